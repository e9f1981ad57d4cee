# SPDX-License-Identifier: Apache-2.0
# Writes OUTPUT, the table mrt_page_files of src/cli/serve/serve.h: each of FILES with its name.
set(arrays "")
set(rows "")
set(number 0)
foreach(file ${FILES})
  file(READ ${file} bytes HEX)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
  cmake_path(GET file FILENAME name)
  string(APPEND arrays "static const unsigned char file${number}[] = {${bytes}};\n")
  string(APPEND rows "    {\"${name}\", file${number}, sizeof file${number}},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE ${OUTPUT} "/* Made by cmake/embed.cmake. */\n#include \"cli/serve/serve.h\"\n\n${arrays}
const struct mrt_page_file mrt_page_files[] = {\n${rows}};
const size_t mrt_page_file_count = sizeof mrt_page_files / sizeof mrt_page_files[0];\n")
