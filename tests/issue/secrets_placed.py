"""Secrets that are known by their place: texts of each kind, {} where a secret stands that must go and all else must
stay; and near misses of each kind, which stay whole.

PLACED and NEAR are put together as they are, each text apart from the others, with a secret of its own for each {}.
"""
from secrets_made import ALNUM, made

PLACED = {
    "a variable of a program": [
        'api_key: str = "{}"', 'password: Optional[str] = "{}"', "token: 'str | None' = '{}'", "hub_token: Final[str] = '{}'",
        'PASSWORD = """{}"""', "secret = '''\n{}\n'''", 'api_key = f"{}"', 'password = b"{}"', "password = r'{}'", "passwd = rb'{}'",
        'password = ("{}")', 'api_key = (\n    "{}"\n)', 'password = x or "{}"', 'password = args.password or "{}"',
        'api_key = key if key else "{}"', 'apiKey = process.env.KEY || "{}"', "let password = given ?? '{}'", '(api_token := "{}")',
        'if password == "{}":', 'assert secret != "{}"', 'self.password = "{}"', 'secrets["db"] = "{}"', 'api_key += "{}"',
        'password = conf["db"]["x"] or "{}"', 'token: str="{}"', 'PASSWORD: str = r"""{}"""',
    ],
    "a list or an object of a program": [
        'TOKENS = ["{}", "{}"]', "api_keys = ['{}', '{}']", 'hf_tokens = ("{}", "{}")', 'PASSWORDS = [\n    "{}",\n    "{}",\n]',
        'passwords = {"me": "{}", "you": "{}"}', 'credentials = ("{}", "{}")', 'ACCESS_TOKENS = {"a": "{}"}', "f({password: '{}', user: 'me'})",
        'dict(password="{}", user="me")', 'f(user="me", api_key=None or "{}")', '{"password": "{}", "other": "a or \\"b\\""}',
    ],
    "a default": [
        'os.getenv("API_TOKEN", default="{}")', 'os.environ.get("X_TOKEN", "{}")', 'os.environ.get(\n    "X_TOKEN",\n    "{}",\n)',
        'add_argument("--password", default="{}")', 'add_argument("--api-key", type=str, required=False, default="{}", help="of the service")',
        'add_argument("--password", "-p", default="{}")', '@click.option("--token", "-t", default="{}")', 'getattr(args, "api_key", "{}")',
        'password: str = Field(default="{}")', 'api_key = Field("{}")', 'db_password: SecretStr = SecretStr("{}")', 'token = os.getenv("X", "{}")',
        'password = config.get("x", "{}")', "export HF_TOKEN=${HF_TOKEN:-{}}", 'DB_PASSWORD="${DB_PASSWORD:-{}}"', "API_TOKEN=${OTHER-'{}'}",
    ],
    "an argument of a function": [
        'wandb.login("x","{}")', 'huggingface_hub.login("{}")', 'login("{}")', 'auth=("me","{}")', 'auth = (\n    "me", "{}"\n)',
        'HTTPBasicAuth("me","{}")', 'requests.auth.HTTPDigestAuth("me", \'{}\')', 'aiohttp.BasicAuth("me", "{}")', 'basic_auth=("elastic", "{}")',
        'smtp.login("me", "{}")', 'keyring.set_password("service", "me", "{}")', 'HfApi("https://hub.example", "{}")', 'comet_ml.init("{}")',
        'SecretStr("{}")', '"auth": ["me", "{}"]', 'headers = {"X": "Bearer {}"}', "x = 'Bearer {}'", 'f"Bearer {}"',
    ],
    "a pair of name and value": [
        '{"name":"DB_PASSWORD","value":"{}"}', '{"name": "HF_TOKEN",\n "value": "{}"}', '{"value": "{}", "name": "DB_PASSWORD"}',
        "- name: DB_PASSWORD\n  value: {}", "- name: HF_TOKEN\n  value: '{}'\n- name: NCCL_DEBUG\n  value: INFO", "- value: {}\n  name: API_KEY",
        'env { name = "DB_PASSWORD"\n value = "{}" }', "<property><name>fs.s3a.secret.key</name><value>{}</value></property>",
        "<property>\n  <name>fs.s3a.secret.key</name>\n  <value>{}</value>\n</property>", '{"Key": "client_secret", "Value": "{}"}',
        '{"name": "db_password", "description": "of } it", "default": "{}"}',
    ],
    "a configuration": [
        "password: |\n  {}", "db:\n  password: |-\n    {}\n  host: db.example", "api_key: >\n  {}\nother: x", "- secret: |2+\n    {}",
        "API_KEY := {}", "API_KEY += {}", "DB_PASSWORD ?= {}", '"password":\n  "{}"', "password:\n  '{}'", "creds={}", "cred: {}",
        '"secrets": {"db": "{}", "more": ["{}", "{}"]}', '"password": ["{}"]', '"credentials": {"username": "me", "value": "{}"}',
        "secrets:\n  db: {}\n  more:\n    - {}\n    - '{}'\n  file: /run/secrets/x\nother: abc123def456",
        "passwords:\n- {}\n- {}", "password: [{}, {}]", "credentials: {user: me, word: {}}",
        "auth_token = {}", "hub_token: {}", "<apiKey>{}</apiKey>", "set API_TOKEN {}", "set -x API_TOKEN {}", "set -gx API_TOKEN '{}'", "set --export API_TOKEN {}",
        "set -x password {}", "ENV API_TOKEN {}", "SetEnv API_TOKEN {}", "ENV API_TOKEN={}",
    ],
    "a name": [
        "api_key2={}", "HF_TOKEN1={}", "WANDB_API_KEY1={}", "password_2 = {}", "HFTOKEN={}", "hftoken={}", "GHTOKEN={}", "AUTH={}", "NCCL_AUTH={}",
        "NCCL_AUTH_TOKEN={}", "NCCL_AUTHTOKEN={}", "CREDS={}", "AWS_CREDS={}", "PW={}", "DB_PW={}", "DBPASS={}", "USERPASS={}", "apikey3: {}",
        "MY_APIKEY={}", "KAGGLE_KEY={}", "awssecret={}", '"auth": "{}"', "openaiApiKey2: '{}'", "SecretKey1={}", "API_KEYS={}",
    ],
    "a command": [
        "docker login -p={}", "docker login -u me -p {} r.example", "sudo podman login -p '{}'", "curl -ume:{} https://x.example/", "curl -s -u 'me:{}' x",
        "curl --user=me:{} x", "curl --proxy-user me:{} x", "curl -U me:{} x", '["curl", "-u", "me:{}", "x"]', "http -a me:{} x.example",
        "az login -u me -p {}", "az login --service-principal -p={}", "redis-cli -h db -a {} ping", "ldapsearch -x -D cn=me -w {} -b dc=x",
        "zip -r -P {} a.zip a", "unzip -P {} a.zip", "openssl enc -aes-256-cbc -pass pass:{} -in a", "openssl rsa -passin pass:{}", "openssl rsa -passin 'pass:{}'",
        "lftp -u me,{} ftp.example", "sshpass -p{} ssh x", "sshpass -p '{}' ssh x", "/usr/bin/mysql -u root -p{} runs", "mysqldump '-p{}' runs",
        "mongosh -u me -p {}", "7z x -p{} a.7z", "smbclient //x/y -U me%{}", "ssh-keygen -t rsa -N '{}' -f k", "twine upload -u me -p {} dist",
        "wandb login --relogin {}", "vault login {}", "hf auth login {}", "cd x && curl -u me:{} x | tar x", "x=$(redis-cli -a {} get y)",
        '["redis-cli", "-a", "{}"]', "sqlcmd -S db -U me -P {}", "curl \\\n  -u me:{} \\\n  x", "echo x; ldapadd -w{} -f y",
    ],
    "an option of the launch line": [
        "deepspeed train.py --auth {}", "torchrun train.py --pass {}", "train.py --pw {}", "train.py --user me:{} --lr 3", "train.py --user=me:{}",
        "train.py --key {}", "train.py --key={}", "train.py --kaggle_key {}", "train.py --api-key2 {}", '["train.py", "--key", "{}"]',
        '["train.py", "--pass", "{}", "--lr", "3"]', "train.py --hf_token={} --x", "train.py --db.password {}",
    ],
}

NEAR = {
    "a variable of a program": [
        'tokenizer = "gpt2"', 'pad_token = "<pad>"', 'pad_token: str = "<pad>"', 'tokenizer: str = "bert-base-uncased"', "password: str", "api_key: Optional[str] = None",
        "def f(password: str, mode: str = 'train', size: int = 3):", 'if password == "":', "if token == tokenizer.eos_token:", 'token = token or tokenizer.pad_token',
        "password = a or b", 'token = x["text"] if x else y', 'token: str = field(default=None)', 'if token == "hello":', 'token = "hello"', 'first_token = "internationalization"',
        'PASSWORD = """"""', 'class Token:\n    """A token of a text, with its offset 12345678."""', 'SESSION_KEY = "session"', 'TOKEN_KEY = "access_token"', "def f(self, storage_key: StorageKey) -> int:", 'if not password:\n    "a comment that is 123abc456"',
        'keys = ["weight1a", "bias2b4c5d"]', 'key = "layer12a34"', 'key == "value1234abc"', "author = 'me1234567'", 'password = getpass.getpass("Password: ")',
    ],
    "a list or an object of a program": [
        'tokens = ["hello", "world"]', 'TOKENS = ["<s>", "</s>"]', 'SPECIAL_TOKENS = ["extra1234id"]', "tokens = [101, 2023, 102]", 'stop_tokens = ["</s1a2b3c4>"]',
        'for name in ("password", "token", "api_key"):', 'REDACT = ["password", "secret_key"]', '("CU_P2P_TOKENS", "HIP_P2P_TOKENS")', '"torch._functional_token",\n"torch._make_dual_copy",',
        "`API_KEY`, `ACCESS_KEY`, `PRIVATE1ab`", '"NCCL_PAT_ENABLE", "NCCL_PROFILER_PLUGIN"', '"tokens": {"prompt": 512, "completion": 123456789}',
        'tokens: [1, 2, 3]', 'keys: [layer12ab, layer13ab]', 'bad_tokens = ["abc123def456"]', 'max_tokens = {"gpt2": "1024abcd"}',
    ],
    "a default": [
        'os.getenv("API_TOKEN")', 'os.environ.get("X_TOKEN", None)', 'os.environ.get("NCCL_DEBUG", "INFO")', 'add_argument("--password", required=True, help="of the service")',
        'add_argument("--token", type=str, default=None, help="see 123abc456def")', 'add_argument("--tokenizer", default="gpt2")', 'add_argument("--key", default="text")',
        'add_argument("--max_tokens", default="4096abcd")', 'password = os.environ["DB_PASSWORD"]', "HF_TOKEN=${HF_TOKEN}", "HF_TOKEN=${HF_TOKEN:-}", "${HF_TOKEN:?is not set: see 12345678a}", 'token = batch.get("text", "none")',
    ],
    "an argument of a function": [
        'wandb.init("project", "run1234abc")', 'login("alice")', 'tokenizer("me", "text1234abc")', 'dist.init_process_group("nccl", "tcp://10.0.0.1:2950")', 'f.get("x", "default1234a")',
        'x = "Bearer token is missing"', '"Bearer of news"', 'f"Bearer {token}"', 'auth = ("basic", None)', 'oauth("me", "scope1234a")', 'getattr(model, "layer", "name1234ab")',
        '"auth": "basic"', "auth: kerberos", '"auth": "scram-sha-256"', "auth_type = 'abc123def456'",
    ],
    "a pair of name and value": [
        '{"name":"NCCL_DEBUG","value":"INFO1234ab"}', '{"name": "pad_token", "value": "abc123def456"}', "- name: DB_PASSWORD\n  valueFrom:\n    secretKeyRef:\n      name: db-1a\n      key: password",
        "- name: DB_PASSWORD\n- name: NCCL_DEBUG\n  value: abc123def456", '[{"name": "DB_PASSWORD"}, {"name": "x", "value": "abc123def456"}]', '{"name": "tokenizer", "value": "gpt2abc123"}',
        "name: DB_PASSWORD\n\nvalue: abc123def456", '{"key": "password_policy", "value": "abc123def456"}',
    ],
    "a configuration": [
        '"max_tokens": 4096,', "max_tokens: 4096", '"num_tokens": 131072123', '"bucket": {"reduce_bucket_size": 500000000}', "key: value1234abc", '"key": "value1234abc"',
        "secret:\n  secretName: tls-1a2b3c4d\n  optional: false", "secrets:\n  db:\n    file: ./db1234abc.txt", "password: null", "text: |\n  abc123def456", "note: >-\n  a password of 12 letters",
        "tokenizer:\n  name: gpt2abc123", "set the_token to the next word", "set -x NCCL_DEBUG INFO1234ab", "ENV NCCL_DEBUG INFO1234ab", "BATCH := 12345678a", "tokens += 12345678",
        '"credentials": {"username": "alice1234a", "host": "db1234abc.example", "timeout": 3600}', '"zero_optimization": {"stage": 3, "sub_group_size": 1000000000}',
        "image: app@sha256:0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9", "commit: 0a1b2c3d4e5f60718293a4b5c6d7e8f901234567", '"token": 318', "Secrets:\n   see chapter 12 of the book1234a",
    ],
    "a name": [
        "num_tokens1=512", "max_tokens2: 4096123456", "subtoken=abc123def456", "bostoken=abc123def456", "monkey2=abc123def456", "AUTHOR=abc123def456", "NCCL_AUTO=abc123def456",
        "AUTH=basic", "AUTH=munge", "author: abc123def456", "TOKENIZER1=abc123def456", "compass=abc123def456", "bypass2=abc123def456", "KEY1=abc123def456", "PASS=12345678a", "lowpass=abc123def456",
        "NCCL_IB_HCA=mlx5_0", "credit=abc123def456", "CUDA_CACHE_PATH=/a1b2c3d4e5", "NCCL_PAT_ENABLE=12", "`<HUB_TOKEN>` itself and `other`", "PASSES=12345678a", "tokenizers2=0.22.1abc", "path2=abc123def456",
    ],
    "a command": [
        "docker run -p 8080:8080 image1234a", "docker run --user 1000:1000 image", "docker run -u nobody:nogroup image", "curl -u me x", "curl -ume x", "mysql -p runs1234ab", "mkdir -p a1b2c3d4/e5",
        "zip -r a1234567b.zip a", "ls -a abc123def456", "grep -w abc123def456 file", "redis-cli -h abc123def456 ping", "ldapsearch -b abc123def456", "az vm create -p abc123def456",
        "docker build -p abc123def456", "openssl x509 -in abc123def456", "tar -P abc123def456", "ssh -p 2222 worker-1a2b3c4d", "rsync -u a:b1234567c d", "sed -u s:a1234567b:c:", "wandb sync abc123def456",
        "srun --user=alice job1234ab", "the zipper, then -P abc123def456", "docker login r.example\ndocker run -p 8080:80 image", "docker login r.example && ssh -p 2222abc0 x",
    ],
    "an option of the launch line": [
        "train.py --key text", "train.py --key /path/to/key1.pem", "train.py --key labels-2", "train.py --pass 2", "train.py --pass forward", "train.py --auth basic", "train.py --auth none",
        "train.py --user alice", "train.py --user 1000:1000", "train.py --keys 12", "train.py --tokenizer gpt2abc123", "train.py --max_tokens 4096", "train.py --key_dim 12345678a", "train.py --passes 12345678a",
    ],
}


def secret_of(text, number):
    return made(14, ALNUM, f"placed {number} {text}")


def filled(text):
    """The text with its secrets, and these."""
    parts = text.split("{}")
    secrets = [secret_of(text, number) for number in range(len(parts) - 1)]
    return parts[0] + "".join(secret + part for secret, part in zip(secrets, parts[1:])), secrets


def all_of(table):
    return [(kind, text) for kind, texts in table.items() for text in texts]
