# posenc_library(name description LINK libs... PACKAGES pkg-config names... SOURCES files... HEADERS names...)
# One public library: hidden symbols, an export list, a soname, pkg-config and install rules.
function(posenc_library name description)
  cmake_parse_arguments(arg "" "" "LINK;PACKAGES;SOURCES;HEADERS" ${ARGN})
  add_library(${name} ${arg_SOURCES})
  add_library(posenc::${name} ALIAS ${name})
  target_include_directories(${name}
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
    PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(${name} PRIVATE $<BUILD_INTERFACE:posenc_flags>)
  target_link_libraries(${name} PUBLIC ${arg_LINK})

  # Before 1.0 a minor version may break the ABI, so it is part of the soname.
  set_target_properties(${name} PROPERTIES VERSION ${PROJECT_VERSION} INSTALL_RPATH $ORIGIN
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  set(exports ${PROJECT_SOURCE_DIR}/src/${name}.map)
  target_link_options(${name} PRIVATE LINKER:--version-script=${exports})
  set_target_properties(${name} PROPERTIES LINK_DEPENDS ${exports})

  install(TARGETS ${name} EXPORT posencTargets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  list(TRANSFORM arg_HEADERS PREPEND ${PROJECT_SOURCE_DIR}/include/posenc/)
  install(FILES ${arg_HEADERS} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/posenc)

  # Relative paths, so that an installed tree may be moved.
  file(RELATIVE_PATH PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  string(REGEX REPLACE "/$" "" PC_PREFIX "${PC_PREFIX}")
  set(PC_NAME ${name})
  set(PC_DESCRIPTION ${description})
  set(PC_REQUIRES ${arg_LINK})
  list(REMOVE_ITEM PC_REQUIRES m)
  set(PC_REQUIRES_PRIVATE ${arg_PACKAGES})
  configure_file(${PROJECT_SOURCE_DIR}/cmake/library.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()
