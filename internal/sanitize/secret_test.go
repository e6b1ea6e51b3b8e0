package sanitize_test

import (
	"bytes"
	"encoding/base64"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goparity/goparity/internal/sanitize"
)

// letters returns n letters and digits as a token has them.
func letters(n int) string {
	const from = "aB3dE5fG7hJ9kLmN1pQrStUvWxYz02468"
	return strings.Repeat(from, n/len(from)+1)[:n]
}

func TestSecretsByTheirForm(t *testing.T) {
	key := "-----BEGIN OPENSSH PRIVATE KEY-----\n" + strings.Repeat(letters(64)+"\n", 3) + letters(10) +
		"==\n-----END OPENSSH PRIVATE KEY-----"
	for _, c := range []struct{ text, secret, reason string }{
		{"token hf_" + letters(34) + ".", "hf_" + letters(34), "Hugging Face"},
		{"x ghp_" + letters(36), "ghp_" + letters(36), "GitHub"},
		{"gho_" + letters(36), "gho_" + letters(36), "GitHub"},
		{"ghs_" + letters(36), "ghs_" + letters(36), "GitHub"},
		{"github_pat_" + letters(22) + "_" + letters(50), letters(50), "GitHub, fine-grained"},
		{"glpat-" + letters(20), "glpat-" + letters(20), "GitLab"},
		{"sk-" + letters(40), "sk-" + letters(40), "OpenAI"},
		{"sk-proj-" + letters(20) + "-" + letters(20), letters(20), "OpenAI"},
		{"sk-ant-api03-" + letters(40), letters(40), "Anthropic"},
		{"xoxb-123456789012-" + letters(24), letters(24), "Slack"},
		{"id AKIAIOSFODNN7EXAMPLE,", "AKIAIOSFODNN7EXAMPLE", "AWS"},
		{"ASIAIOSFODNN7EXAMPLE", "ASIAIOSFODNN7EXAMPLE", "AWS, for a session"},
		{"npm_" + letters(36), "npm_" + letters(36), "npm"},
		{"pypi-AgEIcHlwaS5vcmc" + letters(60), letters(60), "PyPI"},
		{"AIza" + letters(35), "AIza" + letters(35), "Google"},
		{"nvapi-" + letters(64), "nvapi-" + letters(64), "NVIDIA"},
		{"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0." + letters(43), letters(43), "a JWT"},
		{"Authorization: Bearer " + letters(20), letters(20), "a header"},
		{"'authorization': 'Basic " + base64.StdEncoding.EncodeToString([]byte("me:word")) + "'",
			base64.StdEncoding.EncodeToString([]byte("me:word")), "a header of a dict"},
		{"basic " + base64.StdEncoding.EncodeToString([]byte("user:pass")), "dXNlcjpwYXNz", "a login"},
		{"basic " + base64.RawURLEncoding.EncodeToString([]byte("user:pass?1")), base64.RawURLEncoding.EncodeToString([]byte("user:pass?1")), "a login without padding"},
		{"basic " + base64.StdEncoding.EncodeToString([]byte("me:my word")), base64.StdEncoding.EncodeToString([]byte("me:my word")), "a login with a space"},
		{"DATA_KEY=" + letters(12) + " QUIZ_KEY=" + letters(13), letters(12), "the first and the last letter of the alphabet"},
		{"V0_KEY=" + letters(12) + " V9_KEY=" + letters(13), letters(12), "and digit"},
		{"Set-Cookie: session=" + letters(20) + "; Path=/", letters(20), "a cookie"},
		{"git clone https://me:wood@example.com/x", "wood", "a password in a URL, however short"},
		{"https://me:p%40ss%2Fword@example.com", "p%40ss%2Fword", "percent-encoded"},
		{"https://" + letters(20) + "@example.com", letters(20), "a token as the user"},
		{"postgres://me:a:b@host/db", "a:b", "a colon in the password"},
		{"GET /x?a=1&token=abc123&b=2", "abc123", "a token in a query"},
		{"https://x/y?sv=1&sig=a%2Bb%3D", "a%2Bb%3D", "a signed URL"},
		{"?X-Amz-Signature=0123abcd", "0123abcd", "a signed URL"},
		{"export DEPLOY_PAT=" + letters(12), letters(12), "a variable of the engine's own"},
		{"SIGNING_KEY=\"" + letters(12) + "\"", letters(12), "in quotes"},
		{"NPM_CONFIG__AUTH=" + letters(12), letters(12), "npm's"},
		{`{"client_secret": "` + letters(12) + `"}`, letters(12), "JSON"},
		{"api_key='" + letters(12) + "'", letters(12), "Python"},
		{"a\n" + key + "\nb", letters(64), "a private key"},
		{`{"key": "` + strings.ReplaceAll(key, "\n", `\n`) + `"}`, letters(64), "a private key in one line"},
		{"is “hf_" + letters(34) + "”", letters(34), "in the quotation marks of a text"},
		{"│hf_" + letters(34) + "│", letters(34), "in a table"},
		{`{"text": "one\nhf_` + letters(34) + `"}`, letters(34), "after a line of JSON"},
		{`{"text": "\u201chf_` + letters(34) + `"}`, letters(34), "after a character of JSON"},
		{"\x1b[31mhf_" + letters(34) + "\x1b[0m", letters(34), "in color"},
		{`\u001b[1;31mhf_` + letters(34), letters(34), "in color, in JSON"},
		{"%3Dhf_" + letters(34), letters(34), "percent-encoded"},
		{"\xff\xfehf_" + letters(34), letters(34), "after what is no text"},
		{"hf_abcdefghijklmno12", "hf_abcdefghijklmno12", "two digits"},
		{"hf_ABCDEFGHIJKLMnoO1", "hf_ABCDEFGHIJKLMnoO1", "letters of both kinds and a digit"},
		{"hf_abcdefghijklmnABYZ", "hf_abcdefghijklmnABYZ", "letters of both kinds"},
		{"hf_ABCDEFGHIJKLMNabyz", "hf_ABCDEFGHIJKLMNabyz", "and the other way round"},
		{"hf_" + strings.Repeat("a", 27), "hf_" + strings.Repeat("a", 27), "too long for a word"},
		{"https://hooks.slack.com/services/T00/B00/" + letters(24), letters(24), "a hook"},
	} {
		got := (*sanitize.Secrets)(nil).Redact(c.text)
		assert.NotContains(t, got, c.secret, c.reason)
		assert.Contains(t, got, "***", c.reason)
		path := filepath.Join(t.TempDir(), "log")
		require.NoError(t, os.WriteFile(path, []byte(c.text), 0o600))
		require.NoError(t, (*sanitize.Secrets)(nil).MaskFile(path))
		masked, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Len(t, masked, len(c.text), "nothing moves")
		assert.NotContains(t, string(masked), c.secret, c.reason)
	}
}

// What a model and its log are made of is not touched.
func TestWhatIsNoSecret(t *testing.T) {
	for _, text := range []string{
		"model.layers.0.self_attn.k_proj-output", "lm_head.weight", "hf_config_overrides", "hf_quantizer_config_for_this_model",
		"sk-learn-compatible-estimator", "task-specific-head-for-classification", "disk-based-cache-for-compilation",
		"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		"commit 3797950f2c1e8a5b7d9e0f1a2b3c4d5e6f708192", "nonce ABCDEFGHIJKLMNOPQRSTUVWXYZ",
		"MODULAR_MAX_CACHE_DIR=/home/me/.cache/modular", "KEYBOARD=german-nodeadkeys", "MONKEY=chimpanzee-of-the-zoo",
		"EOS_TOKEN=<|endoftext|>", "PAD_TOKEN=[PAD_OF_A_BATCH]", `"eos_token": "<|im_end|>"`, "MAX_NEW_TOKENS=4096",
		"pypi-publish-workflow-of-this-repository", "basic attention", "basic " + base64.StdEncoding.EncodeToString([]byte("no login")), "Basic LlamaAttention in float32", "bearer of bad news",
		"sentence-transformers/all-MiniLM-L6-v2", "meta-llama/Llama-3.1-8B-Instruct", "https://example.com:8080/a@b",
		"git@github.com:goparity/goparity.git", "ssh://git@example.com/x", "https://example.com/?q=token&page=2",
		"eyJ is how a JWT begins", "std::vector<int>", "the private key is not shown", "AKIA", "key=value", "cookies: none",
		"hf_abcdefghijklmnop1", "hf_abcdefghijklmnoA1", "hf_abcdefghijklmnABC", "hf_ABCDEFGHIJKLMNOPa", "hf_" + strings.Repeat("a", 26),
		"token 151644 of the vocabulary", "##ing ##token", "Ġtoken", "password: required", "api_key=None",
		"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----", "Ap_" + letters(33), "Ġghp_" + letters(33), "éhf_" + letters(33),
	} {
		assert.Equal(t, text, (*sanitize.Secrets)(nil).Redact(text))
	}
}

func TestSecretsOfAnEnvironment(t *testing.T) {
	path := filepath.Join(t.TempDir(), "askpass")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	for _, c := range []struct{ env, text, want, reason string }{
		{"HF_TOKEN=hf_very_secret", "x hf_very_secret.", "x ***.", "a token"},
		{"GITHUB_PAT=abcDEF123456", "xabcDEF123456x", "x***x", "by its name, anywhere"},
		{"SIGNING_KEY=abcDEF123456", "abcDEF123456", "***", "a key"},
		{"A_TOKEN=abcDEF12", "xabcDEF12x", "x***x", "eight bytes are enough to be found anywhere"},
		{"A_TOKEN=abcdefghijkl", "xabcdefghijklx", "x***x", "twelve, where it could be a word"},
		{"SSH_PASSPHRASE=correct horse battery", "is correct horse battery", "is ***", "a passphrase"},
		{"SESSION_COOKIE=abcDEF123456", "abcDEF123456", "***", "a cookie"},
		{"COOKIE=abcDEF123456", "abcDEF123456", "***", "a cookie"},
		{"NPM_AUTH=abcDEF123456", "abcDEF123456", "***", "an authorization"},
		{"db_password=hunter2", "is hunter2!", "is ***!", "a short one, where it stands alone"},
		{"db_password=hunter2", "hunter22 xhunter2", "hunter22 xhunter2", "but not inside of a word"},
		{"db_password=hunter2", "“hunter2” │hunter2│ hunter2…", "“***” │***│ ***…", "in the quotation marks of a text"},
		{"db_password=hunter2", `"a\nhunter2\n" anhunter2`, `"a\n***\n" anhunter2`, "after a line of JSON"},
		{"db_password=hunter2", "éhunter2 hunter2é hunter2.é", "éhunter2 hunter2é hunter2.é", "a word of any script"},
		{"PGPASSWORD=supersecretvalue", "u:supersecretvalue@", "u:***@", "a word"},
		{"SECRET=attention", "model.layers.0.attention.output", "model.layers.0.attention.output", "no name is touched"},
		{"SECRET=attention", "it is attention.", "it is ***.", "but where it stands alone"},
		{"SORT_KEY=model.layers.0", "model.layers.0", "model.layers.0", "a key of another kind"},
		{"INDEX_URL=https://me:in%40the%2Furl@example.com/", "in@the/url in%40the%2Furl in%40the%2furl", "*** *** ***",
			"the password of a URL, in all spellings"},
		{"A_SECRET=a\"b\\c+d/e", `a"b\c+d/e a\"b\\c+d/e a%22b%5Cc%2Bd%2Fe`, "*** *** ***", "spelled for JSON and URLs"},
		{"A_KEY=-----BEGIN X-----\nabcDEF123456\n-----END X-----", "line abcDEF123456", "line ***", "line by line"},
		{"KEYBOARD=german-layout", "german-layout", "german-layout", "not a key"},
		{"MONKEY=abcDEF123456", "abcDEF123456", "abcDEF123456", "not a key"},
		{"SSH_PUBLIC_KEY=abcDEF123456", "abcDEF123456", "abcDEF123456", "public"},
		{"MODULAR_MAX_CACHE_DIR=/tmp/abcDEF123456", "/tmp/abcDEF123456", "/tmp/abcDEF123456", "a folder"},
		{"GIT_PASS=" + path, path, path, "a file that is there"},
		{"USE_TOKEN=true", "it is true", "it is true", "a switch"},
		{"MAX_TOKENS=4096", "4096", "4096", "a number"},
		{"EOS_TOKEN=<|endoftext|>", "<|endoftext|>", "<|endoftext|>", "a tokenizer's"},
		{"MASK_TOKEN=[MASK]", "[MASK]", "[MASK]", "a tokenizer's"},
		{"PWD=/tmp/abcDEF", "/tmp/abcDEF", "/tmp/abcDEF", "the working folder"},
	} {
		assert.Equal(t, c.want, sanitize.SecretsOf([]string{"A=b", c.env}).Redact(c.text), "%s: %s", c.env, c.reason)
	}
	v := sanitize.SecretsOf([]string{"A_TOKEN=abcDEF12", "B_TOKEN=", "C_TOKEN=abcDEF123456"})
	assert.Equal(t, "*** x***x", v.Redact("abcDEF12 xabcDEF123456x"), "the longer one first, and nothing of it is left")
}

// However a log is written, no piece of a secret passes.
func TestWriter(t *testing.T) {
	v := sanitize.SecretsOf([]string{"A_TOKEN=very-secret-word"})
	token := "hf_" + letters(34)
	key := "-----BEGIN PRIVATE KEY-----\n" + strings.Repeat(letters(64)+"\n", 20) + "-----END PRIVATE KEY-----\n"
	for _, text := range []string{
		"", "no end", "a\nb\r\nc\rd", "very-secret-word\n", "x very-secret-word x " + token + "\n" + token,
		strings.Repeat("x", 200_000) + " very-secret-word " + strings.Repeat("y", 200_000),
		strings.Repeat("x", 64<<10-10) + " " + token + " " + strings.Repeat("y", 70_000) + "\n",
		strings.Repeat(token+" ", 6000), "a\n" + key + "b\n" + key,
	} {
		r := rand.New(rand.NewPCG(1, uint64(len(text))))
		for range 6 {
			var b bytes.Buffer
			w := v.Writer(&b)
			for rest := []byte(text); len(rest) > 0; {
				n := min(1+r.IntN(50_000), len(rest))
				if r.IntN(2) == 0 {
					n = min(1+r.IntN(50), n)
				}
				_, err := w.Write(rest[:n])
				require.NoError(t, err)
				rest = rest[n:]
			}
			require.NoError(t, w.Close())
			got := b.String()
			require.Len(t, got, len(text))
			for i, c := range []byte(got) {
				if c != text[i] && c != '*' {
					t.Fatalf("byte %d was %q and is %q", i, text[i], c)
				}
			}
			assert.False(t, strings.Contains(got, "very-secret") || strings.Contains(got, letters(34)[:12]), "a secret passed")
		}
	}
}

// Wherever an endless line is cut into windows, each byte is what it is where all of it is masked at
// once: what tells a secret from other text may stand in another window.
func TestAnEndlessLine(t *testing.T) {
	v := sanitize.SecretsOf([]string{"DB_PASSWORD=hunter2", "API_TOKEN=" + strings.Repeat("long-value!", 4000)})
	for _, c := range []struct{ text, reason string }{
		{"https://me:wooden@example.com/x ", "the user tells a password"},
		{"Authorization: Bearer " + letters(30) + " ", "a header's name"},
		{"/x?a=1&my-access-token=abc123&b=2 ", "the parameter's name, and what is before it"},
		{"MY_OWN_API_KEY=" + letters(20) + " ", "the variable's name"},
		{`{"client_secret": "` + letters(12) + `"} `, "the key"},
		{`-----BEGIN PRIVATE KEY-----\n` + strings.Repeat(letters(64)+`\n`, 20) + `-----END PRIVATE KEY----- `, "the first line"},
		{"disk-" + letters(30) + " ", "what is before is a part of the word: no token"},
		{"hunter2 ", "a value that stands alone"},
		{"hunter2.hunter2 my-hunter2s ", "a value that does not"},
		{strings.Repeat("long-value!", 4000) + " ", "a value that is longer than a form"},
	} {
		for shift := range 3 {
			line := append(make([]byte, 11*shift), strings.Repeat(c.text, 90_000/len(c.text))...)
			path := filepath.Join(t.TempDir(), "run.json")
			require.NoError(t, os.WriteFile(path, line, 0o600))
			require.NoError(t, v.MaskFile(path))
			want, err := os.ReadFile(path)
			require.NoError(t, err)

			var b bytes.Buffer
			w := v.Writer(&b)
			_, err = w.Write(line)
			require.NoError(t, err)
			require.NoError(t, w.Close())
			assert.True(t, bytes.Equal(want, b.Bytes()), c.reason)
		}
	}
}
