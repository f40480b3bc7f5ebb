"""Secrets of many kinds, made up here: text around each, and the part that must not stay.

They are put together from parts, so that no scanner takes this file for a leak.
"""
import base64
import hashlib
import json
import string

HEX = "0123456789abcdef"
UPPER = string.ascii_uppercase + string.digits
ALNUM = string.ascii_letters + string.digits
WORD = ALNUM + "_-"


def made(length, letters=ALNUM, seed="s"):
    """The same letters in every run, digits among them."""
    number = int.from_bytes(hashlib.sha512(f"{seed}{length}{len(letters)}".encode()).digest() * 4, "big")
    text = ""
    while len(text) < length:
        number, at = divmod(number, len(letters))
        text += letters[at]
    return text[:-2] + "4a" if letters != UPPER else text[:-2] + "4A"


def token(prefix, length, letters=ALNUM):
    return prefix + made(length, letters, prefix)


PASSWORD = "hunter2" + "-Xq!"
BLOCK = "\n".join(made(64, ALNUM + "+/", f"line{n}") for n in range(4))


def key_block(kind):
    return f"-----BEGIN {kind}-----\n{BLOCK}\n-----END {kind}-----"


# name: (text, secret) or (text, secret, kind in the list)
BY_FORM = {
    "AWS access key": token("AKIA", 16, UPPER), "AWS temporary key": token("ASIA", 16, UPPER),
    "GitHub personal": token("ghp_", 36), "GitHub OAuth": token("gho_", 36), "GitHub user": token("ghu_", 36),
    "GitHub server": token("ghs_", 36), "GitHub refresh": token("ghr_", 36), "GitHub fine": token("github_pat_", 82, ALNUM + "_"),
    "GitLab personal": token("glpat-", 20, WORD), "GitLab deploy": token("gldt-", 20, WORD), "GitLab runner": token("glrt-", 20, WORD),
    "GitLab trigger": token("glptt-", 40, HEX),
    "Slack bot": "xoxb-" + "123456789012-1234567890123-" + made(24), "Slack user": "xoxp-" + "1234567890-1234567890-" + made(32, HEX),
    "Slack app": "xapp-" + "1-A012345-123456-" + made(40, HEX),
    "OpenAI": token("sk-", 48), "OpenAI project": token("sk-proj-", 60, WORD), "OpenAI service": token("sk-svcacct-", 60, WORD),
    "Anthropic": token("sk-ant-", 90, WORD), "OpenRouter": token("sk-or-v1-", 64, HEX), "DeepSeek": token("sk-", 32, HEX),
    "Hugging Face": token("hf_", 34), "Hugging Face organisation": token("api_org_", 34),
    "W&B": token("wandb_v1_", 40, ALNUM + "_"),
    "Google API": token("AIza", 35, WORD), "Google OAuth": token("ya29.", 60, WORD), "Google client": token("GOCSPX-", 28, WORD),
    "Stripe": token("sk_live_", 24), "Stripe webhook": token("whsec_", 32), "Twilio": token("SK", 32, HEX),
    "SendGrid": "SG." + made(22, WORD, "a") + "." + made(43, WORD, "b"), "Mailgun": token("key-", 32, HEX),
    "npm": token("npm_", 36), "PyPI": token("pypi-", 120, WORD), "RubyGems": token("rubygems_", 48, HEX),
    "Docker": token("dckr_pat_", 27, WORD), "DigitalOcean": token("dop_v1_", 64, HEX), "Databricks": token("dapi", 32, HEX),
    "Vault": token("hvs.", 24, WORD), "Grafana": token("glsa_", 41), "Sentry": token("sntrys_", 60), "New Relic": token("NRAK-", 27, UPPER),
    "Linear": token("lin_api_", 40), "Notion": token("ntn_", 46), "Shopify": token("shpat_", 32, HEX), "Replicate": token("r8_", 37),
    "Groq": token("gsk_", 52), "NVIDIA": token("nvapi-", 64, WORD), "Tailscale": token("tskey-", 30, WORD),
    "Pulumi": token("pul-", 40, HEX), "age": token("AGE-SECRET-KEY-1", 58, UPPER), "Perplexity": token("pplx-", 48),
    "JSON web token": "eyJ" + made(30, WORD, "h") + ".eyJ" + made(60, WORD, "p") + "." + made(43, WORD, "q"),
    "Telegram": "1102015431:AA" + made(33, WORD), "Discord": "M" + made(23) + "." + made(6, ALNUM, "d") + "." + made(38, WORD),
    "Azure AD": "aB3" + "8Q~" + made(34, WORD),
    "xAI": token("xai-", 80), "LangSmith": "lsv2_pt_" + made(32, HEX, "l") + "_" + made(10, HEX, "m"), "LangSmith service": token("lsv2_sk_", 43),
    "Atlassian": token("ATATT3xFfGF0", 172, WORD) + "=" + made(8, HEX, "at").upper(), "Atlassian cloud": token("ATCTT3xFfGN0", 170, WORD),
    "Bitbucket": token("ATBB", 32), "Trello": token("ATTA", 64, HEX), "Figma": token("figd_", 40, WORD),
    "Airtable": token("pat", 14) + "." + made(64, HEX, "air"), "Doppler personal": token("dp.pt.", 43),
    "Doppler service": "dp.st.prd." + made(43, ALNUM, "dst"), "PlanetScale": token("pscale_tkn_", 43, WORD), "PlanetScale password": token("pscale_pw_", 43),
    "Supabase": token("sbp_", 40, HEX), "Terraform": made(14, ALNUM, "tf") + ".atlasv1." + made(67, WORD, "tf"),
    "Artifactory": token("AKCp", 69), "Square": token("sq0csp-", 43, WORD), "Square access": token("sq0atp-", 22, WORD),
    "Dynatrace": token("dt0c01.", 24, UPPER) + "." + made(64, UPPER, "dt"), "OpenShift": token("sha256~", 43, WORD),
    "Mailchimp": made(32, HEX, "mc") + "-us12", "Fly.io": token("fm2_", 120, ALNUM + "+/"), "Brevo": "xkeysib-" + made(64, HEX, "br") + "-" + made(16, ALNUM, "br"),
    "Netlify": token("nfp_", 36), "Render": token("rnd_", 28), "RunPod": token("rpa_", 44), "Pinecone": token("pcsk_", 70, ALNUM + "_"),
    "Tavily": token("tvly-", 32), "Jina": token("jina_", 60), "Together": token("tgp_v1_", 43, WORD), "NuGet": token("oy2", 43),
    "Supabase secret": token("sb_secret_", 31, WORD), "Cerebras": token("csk-", 48), "Alibaba": token("LTAI", 20),
}

RANDOM = made(40, HEX, "wandb")
CONFIG_64 = base64.urlsafe_b64encode(json.dumps({"train_batch_size": 8, "wandb": {"api_key": made(40, HEX, "w64")}}).encode()).decode().rstrip("=")

IN_CONTEXT = {
    "W&B in the environment": (f"WANDB_API_KEY={RANDOM}", RANDOM),
    "AWS secret": ("aws_secret_access_key = " + made(40, ALNUM + "+/", "aws"), made(40, ALNUM + "+/", "aws")),
    "AWS session": (f'"AWS_SESSION_TOKEN": "{made(120, ALNUM + "+/=", "st")}"', made(120, ALNUM + "+/=", "st")),
    "Azure storage": (f"DefaultEndpointsProtocol=https;AccountName=logs;AccountKey={made(86, ALNUM + '+/', 'az')}==;EndpointSuffix=x",
                      made(86, ALNUM + "+/", "az")),
    "Azure shared access": (f"https://logs.blob.core.windows.net/c/f?sv=2022&sp=r&sig={made(44, ALNUM, 'sas')}", made(44, ALNUM, "sas")),
    "signed S3 address": (f"https://b.s3.amazonaws.com/k?X-Amz-Expires=9&X-Amz-Signature={made(64, HEX, 's3')}&x=1", made(64, HEX, "s3")),
    "address with password": (f"postgres://trainer:{PASSWORD}@db.example/runs", PASSWORD),
    "address with a slash in the password": ("redis://user:pa/ss4Word@cache.example:6379/0", "pa/ss4Word"),
    "address with token": (f"git clone https://{made(20, ALNUM, 'git')}@example.com/a/b.git", made(20, ALNUM, "git")),
    "package index": (f"pip install --index-url https://__token__:{made(24, ALNUM, 'idx')}@pypi.example/simple", made(24, ALNUM, "idx")),
    "proxy": (f"HTTPS_PROXY=http://me:{PASSWORD}@proxy.example:3128", PASSWORD),
    "bearer": (f"Authorization: Bearer {made(30, ALNUM, 'br')}", made(30, ALNUM, "br")),
    "basic": ("-H 'Authorization: Basic dXNlcjpwYXNzd29yZA=='", "dXNlcjpwYXNzd29yZA"),
    "header in Python": (f'headers = {{"Authorization": "Bearer {made(30, ALNUM, "py")}"}}', made(30, ALNUM, "py")),
    "header in JSON in JSON": (f'"h": "{{\\"Authorization\\": \\"token {made(30, ALNUM, "jj")}\\"}}"', made(30, ALNUM, "jj")),
    "API key in a header": (f"X-Api-Key: {made(20, ALNUM, 'xk')}", made(20, ALNUM, "xk")),
    "cookie": (f"Cookie: session={made(26, ALNUM, 'ck')}; theme=dark", made(26, ALNUM, "ck")),
    "Slack webhook": (f"https://hooks.slack.com/services/T0000/B0000/{made(24, ALNUM, 'sw')}", made(24, ALNUM, "sw")),
    "Discord webhook": (f"https://discord.com/api/webhooks/123456/{made(60, WORD, 'dw')}", made(60, WORD, "dw")),
    "RSA key": (key_block("RSA PRIVATE " + "KEY"), BLOCK), "EC key": (key_block("EC PRIVATE " + "KEY"), BLOCK),
    "OpenSSH key": (key_block("OPENSSH PRIVATE " + "KEY"), BLOCK), "PGP key": (key_block("PGP PRIVATE " + "KEY BLOCK"), BLOCK),
    "key without its end": ("-----BEGIN PRIVATE " + "KEY-----\n" + BLOCK + "\n", BLOCK),
    "key of a service account": ('"private_key": "' + key_block("PRIVATE " + "KEY").replace("\n", "\\n") + '"', BLOCK.replace("\n", "\\n")),
    "password in the environment": (f"export DB_PASSWORD={PASSWORD}", PASSWORD),
    "password with all letters": ("MYSQL_PWD=correcthorse", "correcthorse"),
    "password of letters and commas": ("SMTP_PASS=ab,cd;ef&gh", "ab,cd;ef&gh"),
    "password in a command": (f"train.py --db-password {PASSWORD} --epochs 3", PASSWORD),
    "password in a command, equals": (f"train.py --password={PASSWORD}", PASSWORD),
    "token in a command": (f"hf download --token {made(24, ALNUM, 'tc')}", made(24, ALNUM, "tc")),
    "token in a list of words": (f'["train.py", "--hub_token", "{made(24, ALNUM, "tl")}"]', made(24, ALNUM, "tl")),
    "password in YAML": ("password: s3cretWord", "s3cretWord"), "secret in YAML": ("client_secret: abcdef0123", "abcdef0123"),
    "token in Python": (f'login(token="{made(30, ALNUM, "lt")}")', made(30, ALNUM, "lt")),
    "environment in Python": (f'os.environ["MY_SERVICE_TOKEN"] = "{made(12, ALNUM, "ep")}"', made(12, ALNUM, "ep")),
    "default in Python": ("os.environ.setdefault('COMET_API_KEY', 'c0metk3y')", "c0metk3y"),
    "camel case": (f'"clientSecret": "{made(20, ALNUM, "cc")}"', made(20, ALNUM, "cc")),
    "registry": ('"auths": {"r.example": {"auth": "dXNlcjpzM2NyZXQ="}}', "dXNlcjpzM2NyZXQ="),
    "element": ("<password>s3cretWord9</password>", "s3cretWord9"),
    "netrc": (f"machine api.wandb.ai login user password {made(40, HEX, 'nr')}", made(40, HEX, "nr")),
    "npmrc": (f"//registry.npmjs.org/:_authToken={made(36, ALNUM, 'nm')}", made(36, ALNUM, "nm")),
    "sshpass": ("sshpass -p s3cretW0rd ssh worker-1", "s3cretW0rd"), "curl": ("curl -u me:s3cretW1rd https://x.example/", "s3cretW1rd"),
    "wandb login": (f"wandb login {made(40, HEX, 'wl')}", made(40, HEX, "wl")),
    "behind an escaped line's end": (f'"report": "first line\\n{token("ghp_", 37)}\\nlast"', token("ghp_", 37)),
    "name behind an escaped line's end": ('"text": "first line\\npassword=s3cretW4rd"', "s3cretW4rd"),
    "in an encoded address": (f"https://x.example/?next=a%3D{token('hf_', 35)}", token("hf_", 35)),
    "SQL server": ("Server=db;User Id=me;Password=s3cretW2rd;", "s3cretW2rd"),
    "MLflow": ("MLFLOW_TRACKING_PASSWORD=s3cretW3rd", "s3cretW3rd"), "Neptune": ("NEPTUNE_API_TOKEN=" + made(60, ALNUM, "np"), made(60, ALNUM, "np")),
    "ClearML": (f'"secret_key" = "{made(30, ALNUM, "cm")}"', made(30, ALNUM, "cm")),
    "PGPASSWORD": (f"PGPASSWORD={made(14, ALNUM, 'pg')} psql -h db", made(14, ALNUM, "pg")),
    "SSHPASS": (f"SSHPASS={made(14, ALNUM, 'sp')} sshpass -e ssh worker-1", made(14, ALNUM, "sp")),
    "Ansible": (f"ansible_ssh_pass={made(14, ALNUM, 'an')}", made(14, ALNUM, "an")),
    "docker login": (f"docker login -u me -p {made(14, ALNUM, 'dl')} r.example", made(14, ALNUM, "dl")),
    "mysql": (f"mysql -u root -p{made(14, ALNUM, 'my')} runs", made(14, ALNUM, "my")),
    "setenv": (f"setenv HF_TOKEN {made(37, ALNUM, 'se')}", made(37, ALNUM, "se")),
    "aws configure": (f"aws configure set aws_secret_access_key {made(40, ALNUM, 'ac')}", made(40, ALNUM, "ac")),
    "Kaggle file": (f'{{"username": "me", "key": "{made(32, HEX, "kg")}"}}', made(32, HEX, "kg")),
    "W&B login in Python": (f"wandb.login(key='{made(40, HEX, 'wp')}')", made(40, HEX, "wp")),
    "Telegram address": ("https://api.telegram.org/bot1102015431:AA" + made(33, WORD, "tg") + "/sendMessage", "AA" + made(33, WORD, "tg")),
    "Fernet": (f"FERNET_KEY={made(43, WORD, 'fn')}=", made(43, WORD, "fn")),
    "Google storage": ("GOOG1E" + made(55, UPPER, "gs"), made(55, UPPER, "gs")),
    "configuration in base64": (f"train.py --deepspeed_config {CONFIG_64}", CONFIG_64),
    "seen elsewhere by its name": (f"the server refused {RANDOM} (status 401)", RANDOM),
}

MUST_STAY = [
    "commit 9f2d1c0b7e6a5f4d3c2b1a0987654321fedcba98", "GPU-5a1b2c3d-1234-5678-9abc-def012345678", "sha256:" + made(64, HEX, "image"),
    "TORCH_EXTENSIONS_DIR=/home/me/.cache/torch_extensions", "PWD=/home/me/project", "OLDPWD=/tmp",
    "model.layers.3.self_attn.k_proj.weight", "model.embed_tokens.weight: torch.Size([32000, 4096])", "pad_token: <pad>",
    'tokenizer.pad_token = tokenizer.eos_token', "max_new_tokens=256", 'tokenizer = AutoTokenizer.from_pretrained("gpt2")',
    "eos_token_id=50256", '"bos_token": "<s>"', "next token: 318", "token = batch['token']", "for token in tokens:", "num_tokens=131072",
    "password = getpass.getpass()", "token=None", "hub_token: null", "use_auth_token=True", 'token = os.environ["HF_TOKEN"]',
    'api_key = os.getenv("OPENAI_API_KEY")', "HF_TOKEN=$HF_TOKEN", "password: str = None", "--token_type bearer", "PasswordAuthentication=no",
    "ssh://git@github.com/a/b.git", "git@github.com:a/b.git", "http://localhost:29500/status", "https://example.com/a@b/c", "tcp://10.0.0.1:23456",
    "loss=2.1037 grad_norm=0.913 lr=1e-4", "tensor([[0.1234567890123456, 1.0e-05]])", "key=value", "key_states.view(bsz, 32, 128)",
    "NCCL_SOCKET_IFNAME=eth0", "MASTER_ADDR=worker-1", "sk-learn", "task-list-of-evaluations", "scikit-learn==1.4.2",
    "/dev/disk/by-id/nvme-Samsung_SSD_990_PRO_2TB_S7KHNJ0W123456", "hf_config", "hf_transfer==0.1.6", "AKIA", "ghp_short",
    "deepspeed --num_gpus 8 train.py --deepspeed ds_config.json", "torchrun --nproc-per-node=8 --rdzv-endpoint=localhost:0 train.py",
    "-----BEGIN CERTIFICATE-----", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBvZ9 me@host", "forward_pass=3", "Authorization: none",
    "f\"Bearer {token}\"", "secret_file=/run/secrets/x", "world_info=eyJsb2NhbGhvc3QiOiBbMCwgMSwgMiwgM119",
    "docker run -p 8080:80 image", "mkdir -p a/bc/def", "ssh -p 2222 worker-1", "mysql -p runs", "set the_token to the next word", '"key": "value_of_it"',
    "two_pass=true", "first_pass: 3.2 s", "setenv NCCL_DEBUG INFO", "the keyword password set password policy", "route_key=0a1b",
    "--deepspeed_config " + base64.b64encode(b'{"train_batch_size": 8, "bf16": {"enabled": true}}').decode(), "step 12 token 7",
    "RuntimeError: The size of tensor a (4096) must match", "job 0a1b2c3d4e5f60718293a4b5c6d7e8f9", "nvidia-nccl-cu13==2.30.7",
    "SKIP_EVAL=1", "key-value cache", "SG.weight", "dapi", "author: someone", "Authorized users only", "optimizer.step(token)",
    "xai-toolkit", "xai-explainability-and-interpretability-methods", "figd_file", "pattern.0123456789abcdef", "dp.pt.size", "dp.st.stage_3_backward",
    "sbp_loss=0.3", "lsv2_pt_x", "sq0csp-x", "sha256~short", "image@sha256:" + made(64, HEX, "image2"), made(32, HEX, "md5") + "-user", made(32, HEX, "md6") + "-us-east-1",
    "AKCpool", "fm2_layer.weight", "terraform.atlasv1.example", "ATTAchment", "rnd_seed_for_all_the_ranks_of_a_job", "jina_embeddings", "LTAI",
    "patience.best", "csk-means-of-the-data", "dt0c01.x.y", "path0123456789abc.py", made(40, HEX, "commit2"), "pat01234567890123.py",
    "image_token = \"<image>\"", "cookiecutter==2.1", "monkey: 12345678901234567890", "passed: 12, failed: 0", "private_key_path: /x/y",
]
