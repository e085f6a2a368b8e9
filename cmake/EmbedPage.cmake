# Makes C++ of a page: cmake -DPAGE=index.html -DOUT=page_html.cc -P EmbedPage.cmake. Where the page says @name@, the
# file of that name beside it goes.
get_filename_component(folder "${PAGE}" DIRECTORY)
file(READ "${PAGE}" html)
string(REGEX MATCHALL "@[a-z]+\\.[a-z]+@" places "${html}")
foreach(place IN LISTS places)
  string(REPLACE "@" "" name "${place}")
  file(READ "${folder}/${name}" part)
  string(REPLACE "${place}" "${part}" html "${html}")
endforeach()
file(WRITE "${OUT}.html" "${html}")
file(READ "${OUT}.html" bytes HEX)
string(REGEX REPLACE "(..)" "'\\\\x\\1'," bytes "${bytes}")
file(WRITE "${OUT}" "// Made by EmbedPage.cmake.
#include \"server/page/page_html.h\"
namespace kvasir::server::page {
namespace {
constexpr char kBytes[] = {${bytes}};
}
std::string_view page_html() { return {kBytes, sizeof kBytes}; }
}  // namespace kvasir::server::page
")
