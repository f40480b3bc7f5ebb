// Forms as the services document them, and as their secret scanners look for them:
// https://docs.github.com/code-security/secret-scanning/introduction/supported-secret-scanning-patterns
#include "issue/secret_forms.h"

#include <cctype>

namespace dshang::issue {
namespace {

using enum Letters;

constexpr SecretForm kForms[] = {
    {"AWS access key", "AKIA", kUpper, 16, 16},
    {"AWS access key", "ASIA", kUpper, 16, 16},
    {"AWS access key", "ABIA", kUpper, 16, 16},
    {"AWS access key", "ACCA", kUpper, 16, 16},
    {"GitHub token", "ghp_", kAlnum, 30},
    {"GitHub token", "gho_", kAlnum, 30},
    {"GitHub token", "ghu_", kAlnum, 30},
    {"GitHub token", "ghs_", kWord, 30},
    {"GitHub token", "ghr_", kAlnum, 30},
    {"GitHub token", "github_pat_", kWord, 22},
    {"GitLab token", "glpat-", kWord, 18},
    {"GitLab token", "gldt-", kWord, 18},
    {"GitLab token", "glrt-", kWord, 18},
    {"GitLab token", "glptt-", kWord, 18},
    {"GitLab token", "glcbt-", kWord, 18},
    {"GitLab token", "glsoat-", kWord, 18},
    {"GitLab token", "glagent-", kWord, 18},
    {"GitLab token", "GR1348941", kWord, 18},
    {"Slack token", "xoxb-", kWord, 10},
    {"Slack token", "xoxp-", kWord, 10},
    {"Slack token", "xoxa-", kWord, 10},
    {"Slack token", "xoxr-", kWord, 10},
    {"Slack token", "xoxs-", kWord, 10},
    {"Slack token", "xoxe-", kWord, 10},
    {"Slack token", "xoxe.", kWord, 10},
    {"Slack token", "xapp-", kWord, 10},
    {"webhook", "hooks.slack.com/services/", kUrl, 10, 1000, false, true},
    {"webhook", "hooks.slack.com/workflows/", kUrl, 10, 1000, false, true},
    {"webhook", "discord.com/api/webhooks/", kUrl, 10, 1000, false, true},
    {"webhook", "discordapp.com/api/webhooks/", kUrl, 10, 1000, false, true},
    {"webhook", "webhook.office.com/", kUrl, 10, 1000, false, true},
    {"webhook", "open.feishu.cn/open-apis/bot/v2/hook/", kUrl, 10, 1000, false, true},
    {"Anthropic key", "sk-ant-", kWord, 16},
    {"OpenAI key", "sk-proj-", kWord, 16},
    {"OpenAI key", "sk-svcacct-", kWord, 16},
    {"OpenAI key", "sk-admin-", kWord, 16},
    {"key of an AI service", "sk-or-v1-", kHex, 32},
    {"OpenAI key", "sk-", kWord, 20, 1000, true},
    {"Hugging Face token", "hf_", kAlnum, 30},
    {"Hugging Face token", "api_org_", kAlnum, 30},
    {"W&B key", "wandb_v1_", kWord, 20},
    {"Google key", "AIza", kWord, 35},
    {"Google token", "ya29.", kWord, 20},
    {"Google key", "GOCSPX-", kWord, 20},
    {"Google key", "GOOG1E", kUpper, 50},
    {"Stripe key", "sk_live_", kAlnum, 16},
    {"Stripe key", "sk_test_", kAlnum, 16},
    {"Stripe key", "rk_live_", kAlnum, 16},
    {"Stripe key", "whsec_", kBase64, 24},
    {"Twilio key", "SK", kHex, 32, 32, true},
    {"SendGrid key", "SG.", kUrl, 40},
    {"Mailgun key", "key-", kHex, 32, 32, true},
    {"npm token", "npm_", kAlnum, 30},
    {"PyPI token", "pypi-", kWord, 50},
    {"RubyGems key", "rubygems_", kHex, 40},
    {"Docker token", "dckr_pat_", kWord, 20},
    {"DigitalOcean token", "dop_v1_", kHex, 40},
    {"DigitalOcean token", "doo_v1_", kHex, 40},
    {"Databricks token", "dapi", kHex, 32, 34, true},
    {"Vault token", "hvs.", kWord, 20},
    {"Vault token", "hvb.", kWord, 20},
    {"Grafana token", "glsa_", kWord, 20},
    {"Grafana token", "glc_", kBase64, 20},
    {"Sentry token", "sntrys_", kBase64, 20},
    {"New Relic key", "NRAK-", kUpper, 20},
    {"Linear key", "lin_api_", kAlnum, 30},
    {"Notion token", "ntn_", kAlnum, 30},
    {"Postman key", "PMAK-", kWord, 30},
    {"Shopify token", "shpat_", kHex, 32},
    {"Replicate token", "r8_", kAlnum, 30},
    {"Groq key", "gsk_", kAlnum, 30},
    {"NVIDIA key", "nvapi-", kWord, 30},
    {"Kaggle token", "KGAT_", kAlnum, 20},
    {"Tailscale key", "tskey-", kWord, 16},
    {"Pulumi token", "pul-", kHex, 40, 40},
    {"Heroku key", "HRKU-", kWord, 30},
    {"age key", "AGE-SECRET-KEY-1", kUpper, 30},
    {"Perplexity key", "pplx-", kAlnum, 30},
    {"xAI key", "xai-", kAlnum, 32, 1000, true},
    {"LangSmith key", "lsv2_pt_", kWord, 30},
    {"LangSmith key", "lsv2_sk_", kWord, 30},
    {"Atlassian token", "ATATT3", kBase64, 30},
    {"Atlassian token", "ATCTT3", kBase64, 30},
    {"Atlassian token", "ATSTT3", kBase64, 30},
    {"Bitbucket token", "ATBB", kAlnum, 28, 36, true},
    {"Trello token", "ATTA", kHex, 60},
    {"Figma token", "figd_", kWord, 20},
    {"Doppler token", "dp.pt.", kAlnum, 30},
    {"Doppler token", "dp.ct.", kAlnum, 30},
    {"Doppler token", "dp.sa.", kAlnum, 30},
    {"Doppler token", "dp.st.", kDotted, 30},
    {"Doppler token", "dp.scim.", kAlnum, 30},
    {"Doppler token", "dp.audit.", kAlnum, 30},
    {"PlanetScale token", "pscale_tkn_", kDotted, 30},
    {"PlanetScale token", "pscale_pw_", kDotted, 30},
    {"PlanetScale token", "pscale_oauth_", kDotted, 30},
    {"Supabase token", "sbp_", kHex, 40},
    {"Supabase key", "sb_secret_", kWord, 20},
    {"Artifactory key", "AKCp", kAlnum, 50},
    {"Artifactory token", "cmVmdGtuO", kAlnum, 40},
    {"Square token", "sq0csp-", kWord, 30},
    {"Square token", "sq0atp-", kWord, 20},
    {"OpenShift token", "sha256~", kWord, 40},
    {"Fly.io token", "fm1r_", kBase64, 40},
    {"Fly.io token", "fm1a_", kBase64, 40},
    {"Fly.io token", "fm2_", kBase64, 40},
    {"Fly.io token", "fo1_", kWord, 40},
    {"Brevo key", "xkeysib-", kWord, 60},
    {"Netlify token", "nfp_", kAlnum, 30},
    {"Render key", "rnd_", kAlnum, 28, 1000, true},
    {"1Password token", "ops_eyJ", kBase64, 60},
    {"NuGet key", "oy2", kAlnum, 43, 43, true},
    {"Shopify token", "shpca_", kHex, 32},
    {"Shopify token", "shppa_", kHex, 32},
    {"Shopify secret", "shpss_", kHex, 32},
    {"Alibaba key", "LTAI", kAlnum, 16, 20, true},
    {"RunPod key", "rpa_", kAlnum, 40},
    {"Pinecone key", "pcsk_", kWord, 50},
    {"Tavily key", "tvly-", kWord, 28, 1000, true},
    {"Jina key", "jina_", kAlnum, 50},
    {"Cerebras key", "csk-", kAlnum, 40, 1000, true},
    {"Together key", "tgp_v1_", kWord, 40},
    {"Sourcegraph token", "sgp_", kWord, 40},
    {"Sentry token", "sntryu_", kHex, 60},
    {"CircleCI token", "CCIPAT_", kWord, 40},
    {"PostHog key", "phx_", kAlnum, 40},
};

constexpr PartedForm kParted[] = {
    {"JSON web token", {{"eyJ", kWord, 9}, {".", kWord, 10}, {".", kWord, 4}}},
    {"Discord token", {{"M", kWord, 22, 27}, {".", kWord, 6, 6}, {".", kWord, 27}}},
    {"Discord token", {{"N", kWord, 22, 27}, {".", kWord, 6, 6}, {".", kWord, 27}}},
    {"Discord token", {{"O", kWord, 22, 27}, {".", kWord, 6, 6}, {".", kWord, 27}}},
    {"Telegram token", {{"", kDigit, 8, 10}, {":AA", kWord, 33, 33}}},
    {"Azure secret", {{"", kWord, 3, 3}, {"", kDigit, 1, 1}, {"Q~", kDotted, 30, 36}}},
    {"Airtable token", {{"pat", kAlnum, 14, 14}, {".", kHex, 64, 64}}},
    {"Terraform token", {{"", kAlnum, 14, 14}, {".atlasv1.", kWord, 60}}},
    {"Dynatrace token", {{"dt0c01.", kUpper, 24, 24}, {".", kUpper, 64, 64}}},
    {"Dynatrace token", {{"dt0s01.", kUpper, 8}, {".", kUpper, 64, 64}}},
    {"Dynatrace token", {{"dt0s16.", kUpper, 8}, {".", kUpper, 64, 64}}},
    {"Mailchimp key", {{"", kHex, 32, 32}, {"-us", kDigit, 1, 2}}},
};

}  // namespace

std::span<const SecretForm> secret_forms() { return kForms; }

std::span<const PartedForm> parted_forms() { return kParted; }

bool is_letter_of(Letters letters, char c) {
  bool digit = c >= '0' && c <= '9', upper = c >= 'A' && c <= 'Z', small = c >= 'a' && c <= 'z';
  auto one_of = [c](std::string_view others) { return others.find(c) != std::string_view::npos; };
  switch (letters) {
    case kDigit:
      return digit;
    case kAlnum:
      return digit || upper || small;
    case kWord:
      return digit || upper || small || one_of("_-");
    case kUpper:
      return digit || upper;
    case kHex:
      return digit || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
    case kDotted:
      return digit || upper || small || one_of("_-.~");
    case kBase64:
      return digit || upper || small || one_of("+/=_-");
    case kUrl:
      return digit || upper || small || one_of("_-~./=?&%@:");
  }
  return false;
}

}  // namespace dshang::issue
