package sanitize

import (
	"bytes"
	"encoding/base64"
	"regexp"
	"sync"
	"unicode/utf8"
)

// form is what secrets of one kind look like.
type form struct {
	anchors []string       // what each of them has; looking for these first is fast
	is      *regexp.Regexp // from the anchor on; the first group is the secret
	before  func(text []byte) bool
	check   func(secret []byte) bool // nil: all that match
}

// find returns the secret of this form whose anchor is at b[at:].
func (f *form) find(b []byte, at int) (span [2]int, ok bool) {
	if f.before != nil && !f.before(b[max(0, at-context):at]) {
		return span, false
	}
	m := f.is.FindSubmatchIndex(b[at:min(at+reach, len(b))])
	if m == nil || m[3] <= m[2] || f.check != nil && !f.check(b[at+m[2]:at+m[3]]) {
		return span, false
	}
	return [2]int{at + m[2], at + m[3]}, true
}

func formed(b []byte) (spans [][2]int) {
	for _, f := range forms() {
		for _, a := range f.anchors {
			eachIndex(b, []byte(a), func(at int) {
				if span, ok := f.find(b, at); ok {
					spans = append(spans, span)
				}
			})
		}
	}
	return spans
}

func anchored(expression string) *regexp.Regexp { return regexp.MustCompile(`^(?:` + expression + `)`) }

// token is a form that begins with an anchor, after no letter or digit.
func token(expression string, check func([]byte) bool, anchors ...string) form {
	return form{anchors, anchored("(" + expression + ")"), begins, check}
}

// begins reports whether what follows the text is not the rest of a word.
func begins(text []byte) bool {
	r, _ := utf8.DecodeLastRune(text)
	return r == '_' || !isWord(r) || escapes(text)
}

// escapes reports whether an escape or a color ends the text. Its letters are part of no word: in
// JSON a token may follow \n.
func escapes(text []byte) bool { return escaped.Match(text[max(0, len(text)-16):]) }

var escaped = regexp.MustCompile(`(?:\\[bfnrtv]|\\x[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|%[0-9A-Fa-f]{2}|\x1b\[[0-9;]*m|\[[0-9;]+m)$`)

// after is a form whose secret follows an anchor.
func after(expression string, check func([]byte) bool, anchors ...string) form {
	return form{anchors, anchored(expression), nil, check}
}

// forms are those of the services that engines and CI meet, and those of HTTP, URLs and PEM.
var forms = sync.OnceValue(func() []form {
	return []form{
		token(`(?:hf|api_org)_[A-Za-z0-9]{16,}`, random, "hf_", "api_org_"),
		token(`gh._[A-Za-z0-9]{16,}`, random, "gho_", "ghp_", "ghr_", "ghs_", "ghu_"),
		token(`github_pat_[A-Za-z0-9_]{16,}`, random, "github_pat_"),
		token(`gl[a-z]{2,6}-[A-Za-z0-9_.-]{16,}`, random, "glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glsoat-",
			"glagent-"),
		token(`.k-[A-Za-z0-9_-]{16,}|.k_(?:live|test)_[A-Za-z0-9]{16,}`, random, "sk-", "rk-", "sk_", "rk_"),
		token(`xox[a-z]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,}`, random, "xox", "xapp-"),
		token(`A...[A-Z0-9]{16}\b`, nil, "AKIA", "ASIA", "ABIA", "ACCA"),
		token(`AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9_-]{16,}`, nil, "AIza", "ya29."),
		token(`npm_[A-Za-z0-9]{16,}|pypi-[A-Za-z0-9_-]{16,}|dckr_pat_[A-Za-z0-9_-]{16,}`, random, "npm_", "pypi-", "dckr_pat_"),
		token(`nvapi-[A-Za-z0-9_-]{16,}|(?:gsk|r8)_[A-Za-z0-9]{16,}|dop_v1_[a-f0-9]{16,}`, random, "nvapi-", "gsk_", "r8_",
			"dop_v1_"),
		token(`SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}`, nil, "SG."),
		token(`eyJ[A-Za-z0-9_-]{5,}\.(?:eyJ[A-Za-z0-9_-]{2,}\.[A-Za-z0-9_-]*|[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,})`, nil, "eyJ"),
		after(`hooks\.slack\.com/services/([A-Za-z0-9/]{8,})`, nil, "hooks.slack.com/services/"),

		// Headers.
		after(`(?i)earer["']?[\s:=]+["']?([A-Za-z0-9._~+/=-]{8,})`, random, "earer", "EARER"),
		after(`(?i)asic\s+([A-Za-z0-9+/_-]{6,}={0,2})`, isLogin, "asic ", "ASIC "),
		after(`(?i)uthorization["']?\s*[:=]\s*["']?(?:bearer|basic|token|digest|negotiate)\s+([^\s"',;]{4,})`, nil,
			"uthorization", "UTHORIZATION"),
		after(`(?i)ookie["']?:\s*["']?([^\s"',;=]+=[^\r\n"']+)`, nil, "ookie:", "OOKIE:", `ookie":`, "ookie':"),

		// URLs: a password, a token in place of a user, and what signs a query.
		after(`://[^\s/?#"'<>@:]*:([^\s/"'<>]+)@`, nil, "://"),
		after(`://([^\s/?#"'<>@:]{16,})@`, random, "://"),
		{[]string{"oken=", "key=", "Key=", "KEY=", "sig=", "ignature=", "redential=", "secret=", "assword=", "asswd=", "pwd=", "auth="},
			anchored(`[A-Za-z]+=([^\s&;#"'<>]{4,})`), inQuery, nil},

		// Assignments, as an environment or settings are printed.
		{[]string{"PAT=", "KEY=", "TOKEN=", "SECRET=", "PASSWORD=", "PASSWD=", "PASSPHRASE=", "COOKIE=", "AUTH="},
			anchored(`[A-Z]+=(?:["']?([^\s"',;]{8,}))`), isVariable, assigned},
		{[]string{"SECRET=", "PASSWORD=", "PASSPHRASE="}, anchored(`[A-Z]+="([^"\r\n]{8,})"`), isVariable, assigned},
		after(`(?i)[a-z]+(?:_?[a-z]+)?["']?\s*[:=]\s*["']([^\s"',;]{6,})["']`, assigned, "password", "passwd", "passphrase",
			"client_secret", "secret_key", "api_key", "apikey", "apiKey", "access_key", "private_key", "access_token",
			"auth_token", "refresh_token", "hf_token"),

		// A private key, also in one line of JSON; without its end where the text is cut.
		after(`-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----`+
			`((?:(?:\\[nr]|\s)+(?:[A-Za-z-]+: [^\s\\]+|[A-Za-z0-9+/=]{16,}))*(?:(?:\\[nr]|\s)+[A-Za-z0-9+/=]{1,15}(?:\\[nr]|\s)+`+
			`-----END [A-Z0-9 ]*PRIVATE KEY-----)?)`, nil, "-----BEGIN "),
	}
})

// inQuery reports whether a parameter of a URL's query ends the text, or its beginning does.
func inQuery(text []byte) bool {
	before := bytes.TrimRightFunc(text[max(0, len(text)-40):], func(r rune) bool { return r == '-' || isWord(r) })
	return len(before) > 0 && bytes.IndexByte([]byte("?&;"), before[len(before)-1]) >= 0
}

// isVariable reports whether the text ends with the beginning of a variable's name in capitals.
func isVariable(text []byte) bool {
	return len(text) > 0 && isUpper(text[len(text)-1]) && bytes.LastIndexByte(text, '_') > bytes.LastIndexAny(text, " \t\r\n\"'")
}

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' || c == '_' || '0' <= c && c <= '9' }

// random reports whether a token looks drawn by lot and not written by a person, who would write
// words: "sk-learn-compatible-estimator".
func random(b []byte) bool {
	digit, lower, upper := 0, 0, 0
	for _, c := range b {
		switch {
		case '0' <= c && c <= '9':
			digit++
		case 'a' <= c && c <= 'z':
			lower++
		case 'A' <= c && c <= 'Z':
			upper++
		}
	}
	return digit > 1 || lower > 1 && upper > 1 && digit > 0 || lower > 3 && upper > 3 ||
		len(b) >= 30 && !bytes.ContainsAny(b[4:], "-_. ")
}

// isLogin reports whether b is a user and a password in base64: "basic attention" is none.
func isLogin(b []byte) bool {
	text, err := base64.StdEncoding.DecodeString(string(b))
	if err != nil {
		text, err = base64.RawURLEncoding.DecodeString(string(bytes.TrimRight(b, "=")))
	}
	printable := func(r rune) bool { return r >= ' ' && r != utf8.RuneError }
	return err == nil && bytes.IndexByte(text, ':') >= 0 && bytes.IndexFunc(text, func(r rune) bool { return !printable(r) }) < 0
}

// assigned reports whether what is assigned can be a secret: no token of a tokenizer, no word.
func assigned(b []byte) bool {
	s := string(b)
	return isCandidate(s) && !isPlain(s) && !number.MatchString(s) && s[0] != '$' && s[0] != '*' && s[0] != '/'
}
