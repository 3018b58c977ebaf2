# cmake -DOUTPUT=file.h -DINPUTS=a.npy;b.npy -P embed.cmake
# Writes the data of float32 .npy files as C byte arrays, so that an installed program needs no files.
# Byte arrays keep the header free of number formatting; the program copies them into floats.
set(text "/* Made by cmake/embed.cmake: float32 arrays, little-endian bytes. */\n")
foreach(input IN LISTS INPUTS)
  get_filename_component(name ${input} NAME_WE)
  file(READ ${input} length_hex OFFSET 8 LIMIT 2 HEX) # version 1: two bytes, little-endian
  string(REGEX REPLACE "(..)(..)" "0x\\2\\1" length ${length_hex})
  math(EXPR offset "10 + ${length}")
  file(READ ${input} bytes OFFSET ${offset} HEX)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
  string(REGEX REPLACE "(................................................................................)" "\\1\n" bytes "${bytes}")
  string(APPEND text "static const unsigned char embedded_${name}[] = {\n${bytes}};\n")
endforeach()
file(WRITE ${OUTPUT} "${text}")
