// Where secrets stand in a text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace dshang::issue {

struct Secret {
  std::size_t begin, end;  // bytes of the text
  std::string kind;
};
using Secrets = std::vector<Secret>;

// Each adds what it finds; they may overlap.
void find_private_keys(std::string_view text, Secrets* found);  // -----BEGIN … PRIVATE KEY-----
void find_forms(std::string_view text, Secrets* found);         // secret_forms.h, and tokens in several parts
void find_urls(std::string_view text, Secrets* found);          // scheme://user:password@host, signatures
void find_headers(std::string_view text, Secrets* found);       // Authorization, Cookie, Bearer …
void find_named(std::string_view text, Secrets* found);         // NAME=value, "name": "value", --name value
void find_pairs(std::string_view text, Secrets* found);         // {"name": "…", "value": "…"}
void find_calls(std::string_view text, Secrets* found);         // HTTPBasicAuth("user", "password")
void find_commands(std::string_view text, Secrets* found);      // curl -u, sshpass -p, wandb login
void find_encoded(std::string_view text, Secrets* found);       // any of the above, in base64

// All of them, in order of their begin, none overlapping; of those that overlap the first of the list above
// names the kind.
Secrets find_secrets(std::string_view text);
// The same without those in base64.
Secrets find_plain(std::string_view text);

// Letters of names and numbers, between which no secret begins.
bool in_word(char c);
// Whether a word can begin here: not behind a letter, unless that is part of an escape (\n, %3D).
bool begins_here(std::string_view text, std::size_t at);

}  // namespace dshang::issue
