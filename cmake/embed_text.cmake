# cmake -DOUTPUT=file.h -DINPUT=table.tsv -DNAME=array -P embed_text.cmake
# Writes a text file as a C byte array with a NUL behind it.
file(READ ${INPUT} bytes HEX)
string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
string(REGEX REPLACE "(................................................................................)" "\\1\n" bytes "${bytes}")
file(WRITE ${OUTPUT} "/* Made by cmake/embed_text.cmake from ${INPUT}. */\nstatic const unsigned char ${NAME}[] = {\n${bytes}0x00};\n")
