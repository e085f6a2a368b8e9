// The page as one file, made of those beside this one when the program is built.
#pragma once

#include <string_view>

namespace kvasir::server::page {

std::string_view page_html();

}  // namespace kvasir::server::page
