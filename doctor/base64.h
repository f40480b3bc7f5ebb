// Texts in base64, of the usual alphabet and of that for addresses.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace dshang::doctor {

bool in_base64(char c);  // = is none of its letters
// What the letters hold; the bits of a last, incomplete byte are left out.
std::string from_base64(std::string_view letters);
// Whole and padded, as Python's urlsafe_b64decode takes it, and readable text inside.
std::optional<std::string> text_in_base64(std::string_view whole);
// No bytes that a text does not have; of UTF-8, any.
bool readable_text(std::string_view text);

}  // namespace dshang::doctor
