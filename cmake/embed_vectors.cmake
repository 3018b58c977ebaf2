# cmake -DOUTPUT=file.h -DFOLDER=data/vectors -P embed_vectors.cmake
# Writes all files of the folder as one C byte array with a table of them, and the names of the cases, so that an
# installed program needs no files and no JSON reader.
file(GLOB paths ${FOLDER}/*.npy)
list(PREPEND paths ${FOLDER}/index.json ${FOLDER}/LICENSE)
set(offset 0)
foreach(path IN LISTS paths)
  get_filename_component(name ${path} NAME)
  file(READ ${path} hex HEX)
  string(LENGTH "${hex}" length)
  math(EXPR size "${length} / 2")
  string(APPEND files "    {\"${name}\", ${offset}, ${size}},\n")
  math(EXPR offset "${offset} + ${size}")
  string(REGEX REPLACE "(..)" "0x\\1," hex "${hex}")
  string(REGEX REPLACE "(................................................................................)" "\\1\n" hex "${hex}")
  string(APPEND bytes "${hex}\n")
endforeach()

file(READ ${FOLDER}/index.json index)
string(JSON format GET "${index}" format)
string(JSON content GET "${index}" content)
string(JSON list GET "${index}" cases)
string(JSON count LENGTH "${list}")
math(EXPR last "${count} - 1")
foreach(i RANGE ${last})
  string(JSON case GET "${list}" ${i})
  string(APPEND cases "    {")
  foreach(key name kind catches)
    string(JSON value GET "${case}" ${key})
    string(APPEND cases "\"${value}\",")
  endforeach()
  string(APPEND cases "},\n")
endforeach()

file(WRITE ${OUTPUT} "/* Made by cmake/embed_vectors.cmake from data/vectors. */
enum { EMBEDDED_VECTORS_FORMAT = ${format}, EMBEDDED_VECTORS_CONTENT = ${content} };
static const struct { const char *name; size_t offset, size; } embedded_vector_files[] = {\n${files}};
static const struct { const char *name, *kind, *catches; } embedded_vector_cases[] = {\n${cases}};
static const unsigned char embedded_vector_bytes[] = {\n${bytes}};\n")
