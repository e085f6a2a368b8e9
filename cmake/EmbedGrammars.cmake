# Makes C++ of grammars: cmake -DFILES=a.gbnf,b.gbnf -DOUT=shipped.cc -P EmbedGrammars.cmake
string(REPLACE "," ";" files "${FILES}")
set(texts "")
set(rows "")
foreach(file IN LISTS files)
  get_filename_component(name "${file}" NAME_WE)
  file(READ "${file}" bytes HEX)
  string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${bytes}")
  string(APPEND texts "constexpr char k_${name}[] = {${bytes}};\n")
  string(APPEND rows "    {\"${name}\", {k_${name}, sizeof k_${name}}},\n")
endforeach()
file(WRITE "${OUT}" "// Made by EmbedGrammars.cmake.
#include \"grammar/shipped/shipped_grammars.h\"
namespace kvasir::grammar {
namespace {
${texts}constexpr ShippedGrammar kGrammars[] = {
${rows}};
}
std::span<const ShippedGrammar> shipped_grammars() { return kGrammars; }
}  // namespace kvasir::grammar
")
