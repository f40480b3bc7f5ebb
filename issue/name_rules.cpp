#include "issue/name_rules.h"

namespace dshang::issue {
namespace {

// Something about a secret, not the secret.
constexpr const char* kAbout =
    "file path dir folder length policy prompt name type ids count manager url uri helper method provider "
    "expiry expires limit authentication ref refs field exists enable enabled required min max hint label "
    "strength rotation";
// Whose "pass" is a password.
constexpr const char* kPassOf = "ssh become sudo db smtp mail redis mysql user admin login root my";
constexpr const char* kRuns = "forward backward per one single first second two last";
// Words of keys that open something; "key" alone is that of a map.
constexpr const char* kKeysOf =
    "api access private secret account subscription license encryption signing shared storage auth ssh app "
    "service client deploy session decryption webhook admin hmac jwt sas wandb openai consumer azure fernet master "
    "token kaggle comet anthropic aws hf";
// Tokens that open something, where the plural or a word written together could be of a text.
constexpr const char* kTokensOf =
    "api access auth bearer refresh hf hub huggingface wandb gh github gitlab git bot slack npm pypi user my "
    "jwt session secret service deploy login comet neptune kaggle aws azure";
// Tokens of a text.
constexpr const char* kTextTokens =
    "pad eos bos sep cls mask unk image video audio next per num max min special start end stop first last new "
    "prev decoder target vision mean each extra position class eot prompt padding text is sub one any distill "
    "bad word forced suppress additional added control system chat draft input output total train seen";

using enum Place;
using Spelling::kCapitals, Spelling::kEvery, Spelling::kLoud, Spelling::kOption;
using Looks::kAny, Looks::kMade, Looks::kPair, Looks::kToken;

constexpr NameRule kRules[] = {
    {"webhook", "url", kLast, "webhook", "", kEvery, kAny},
    {"", kAbout, kLast, "", "", kEvery, kAny},
    {"password", "password passwd passphrase passcode pwd mnemonic userpwd sshpass passwords", kAnywhere, "",
     "", kEvery, kAny},
    {"password", "pass pw", kLast, kPassOf, "", kEvery, kAny},
    {"password", "pass pw", kLast, "*", kRuns, kLoud, kAny},
    {"password", "pw", kOnly, "", "", kLoud, kAny},
    {"password", "pass", kOnly, "", "", kOption, kMade},
    {"key", "key keys", kAnywhere, kKeysOf, "", kEvery, Looks::kKey},
    {"key", "key", kOnly, "", "", kOption, kMade},
    {"secret", "secret secrets credential credentials cred creds cookie pat", kAnywhere, "", "", kEvery,
     kAny},
    {"token", "token", kLast, "", kTextTokens, kEvery, kToken},
    {"token", "tokens", kLast, kTokensOf, "", kEvery, kMade},
    {"token", "tokens", kLast, "", kTextTokens, kCapitals, kMade},
    {"password", "auth", kLast, "", "", Spelling::kKey, kMade, true},
    {"password", "auth", kLast, "", "", kEvery, kPair, true},
    {"connection string", "string", kLast, "connection", "", kEvery, kAny},
};

constexpr Glued kGlued[] = {
    {"password", ""}, {"passwd", ""},       {"secret", ""},       {"passphrase", ""}, {"pass", kPassOf},
    {"key", kKeysOf}, {"token", kTokensOf}, {"tokens", kTokensOf}, {"auth", "basic http proxy"},
};

}  // namespace

std::span<const NameRule> name_rules() { return kRules; }
std::span<const Glued> glued_words() { return kGlued; }

const char* names_about() { return kAbout; }

const char* names_beside() {
  return "user username users login email host hostname port server database region team project entity id "
         "account scope scopes endpoint address version algorithm format encoding description";
}

}  // namespace dshang::issue
