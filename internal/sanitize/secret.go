package sanitize

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Secrets are known ones. A nil *Secrets knows none: only what has the form of a secret is one.
type Secrets struct {
	substrings [][]byte // the longest first, so that nothing is left of one that begins with another
	wholeWords [][]byte // that could be parts of names: only where they stand alone
}

// Names of variables that hold a secret. A key or an authorization may also be a plain word, such
// as that of a column or of a method.
var (
	secretName = regexp.MustCompile(`(?i)((^|[_-])(PATS?|KEYS?|PASS|JWT)|[_-]PWD|AUTH(_CONFIG)?|COOKIES?|TOKENS?|SECRETS?|` +
		`PASSWORDS?|PASSWD|PASSPHRASES?|(API|ACCESS|PRIVATE|SECRET)_?KEYS?|CREDENTIALS?)$`)
	mildName   = regexp.MustCompile(`(?i)((^|[_-])KEYS?|AUTH|COOKIES?)$`)
	publicName = regexp.MustCompile(`(?i)PUBLIC`)
)

// SecretsOf returns the secrets of an environment, KEY=value: the values of variables whose names say
// so and the passwords in URLs, each also as JSON and URLs spell it.
func SecretsOf(env []string) *Secrets {
	v := &Secrets{}
	for _, kv := range env {
		key, value, _ := strings.Cut(kv, "=")
		if secretName.MatchString(key) && !publicName.MatchString(key) {
			if _, err := os.Lstat(value); !filepath.IsAbs(value) || err != nil { // else it is where a secret lies
				v.add(value, mildName.MatchString(key))
			}
			continue
		}
		if u, err := url.Parse(value); err == nil && u.User != nil {
			password, _ := u.User.Password()
			v.add(password, false)
		}
	}
	for _, list := range []*[][]byte{&v.substrings, &v.wholeWords} {
		slices.SortFunc(*list, func(a, b []byte) int { return cmp.Compare(len(b), len(a)) })
	}
	return v
}

// ofProcess returns the secrets of this process's environment, as it was when first asked for.
var ofProcess = sync.OnceValue(func() *Secrets { return SecretsOf(os.Environ()) })

// Redact replaces each secret of this process's environment, and what has the form of one, by ***.
func Redact(text string) string { return ofProcess().Redact(text) }

// add adds a value in all spellings, line by line, because logs are read so.
func (v *Secrets) add(value string, weakName bool) {
	for line := range strings.Lines(value) {
		line = strings.TrimSpace(line)
		if !isCandidate(line) || weakName && isPlain(line) {
			continue
		}
		list := &v.substrings
		if len(line) < minSubstring || len(line) < minWord && isPlain(line) {
			list = &v.wholeWords
		}
		for _, s := range append(spellings(line), spellings(value)...) {
			*list = append(*list, []byte(s))
		}
	}
}

// spellings returns a text as it is, and as JSON and URLs have it, whose escapes may be in small letters.
func spellings(s string) []string {
	quoted, _ := json.Marshal(s) // a text has no error
	all := []string{s, string(quoted[1 : len(quoted)-1])}
	for _, escaped := range []string{url.QueryEscape(s), url.PathEscape(s)} {
		all = append(all, escaped, escape.ReplaceAllStringFunc(escaped, strings.ToLower))
	}
	return all
}

var escape = regexp.MustCompile(`%[0-9A-F]{2}`)

// plain is what could be the name of a layer, a word or a switch.
var plain = regexp.MustCompile(`^[a-z]+([._-]?[a-z]+|\.[0-9]+)*$`)

func isPlain(s string) bool { return plain.MatchString(s) }

// special is a token of a tokenizer: <|endoftext|>, [MASK], </s>.
var special = regexp.MustCompile(`^(<.*>|\[.*\])$`)

var number = regexp.MustCompile(`^[0-9.,]*$`)

// isCandidate reports whether a value can be a secret at all: "true" and "1" are all over a log, and a
// tokenizer has tokens, too.
func isCandidate(s string) bool {
	switch {
	case special.MatchString(s), strings.HasPrefix(s, "-----"):
		return false
	case len(s) >= minSubstring:
		return true
	}
	return len(s) >= shortest && !isPlain(s) && !number.MatchString(s)
}

// spans returns where the secrets of b are, as offsets of their beginnings and ends, in order and
// without overlaps.
func (v *Secrets) spans(b []byte) [][2]int {
	var found [][2]int
	if v != nil {
		for _, s := range v.substrings {
			eachIndex(b, s, func(at int) { found = append(found, [2]int{at, at + len(s)}) })
		}
		for _, s := range v.wholeWords {
			eachIndex(b, s, func(at int) {
				if standsAlone(b, at, at+len(s)) {
					found = append(found, [2]int{at, at + len(s)})
				}
			})
		}
	}
	found = append(found, formed(b)...)
	slices.SortFunc(found, func(a, b [2]int) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(b[1], a[1])) })
	var out [][2]int
	for _, f := range found {
		if n := len(out); n > 0 && f[0] < out[n-1][1] {
			out[n-1][1] = max(out[n-1][1], f[1])
		} else {
			out = append(out, f)
		}
	}
	return out
}

func eachIndex(b, s []byte, found func(at int)) {
	for from := 0; ; {
		i := bytes.Index(b[from:], s)
		if i < 0 {
			return
		}
		found(from + i)
		from += i + 1
	}
}

// isWord reports whether r is part of a word, of any script. Quotation marks and lines of a table
// are not.
func isWord(r rune) bool {
	return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
}

// standsAlone reports whether b[from:to] is not a part of a longer word or dotted name.
func standsAlone(b []byte, from, to int) bool {
	word := func(r rune) bool { return r == '-' || isWord(r) }
	after, n := utf8.DecodeRune(b[to:])
	second, _ := utf8.DecodeRune(b[to+n:])
	if word(after) || after == '.' && word(second) {
		return false
	}
	before, n := utf8.DecodeLastRune(b[:from])
	second, _ = utf8.DecodeLastRune(b[:from-n])
	return !word(before) && !(before == '.' && word(second)) || escapes(b[:from])
}

// Redact replaces each secret in a text by ***.
func (v *Secrets) Redact(text string) string {
	spans := v.spans([]byte(text))
	if len(spans) == 0 {
		return text
	}
	var b strings.Builder
	at := 0
	for _, s := range spans {
		b.WriteString(text[at:s[0]])
		b.WriteString("***")
		at = s[1]
	}
	return b.String() + text[at:]
}

// masked returns a copy of b[from:to] with each byte of a secret of b overwritten by an asterisk.
func (v *Secrets) masked(b []byte, from, to int) []byte {
	out := bytes.Clone(b[from:to])
	for _, s := range v.spans(b) {
		for i := max(s[0], from); i < min(s[1], to); i++ {
			out[i-from] = '*'
		}
	}
	return out
}

// Writer returns a writer that passes on to w what is written to it, with each byte of a secret
// overwritten by an asterisk. It keeps a line until it is complete, and a private key, but of an
// endless line not much more than 64 KiB. Close passes on the rest; it does not close w.
func (v *Secrets) Writer(w io.Writer) io.WriteCloser { return &writer{v: v, w: w} }

type writer struct {
	v      *Secrets
	w      io.Writer
	kept   []byte
	passed int // how many bytes of kept are passed on: they stay to tell what the next ones are
}

// most is how many bytes of an endless line a writer passes on at once.
const most = 64 << 10

func (w *writer) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		k := min(len(p), most)
		w.kept = append(w.kept, p[:k]...)
		p = p[k:]
		if err := w.pass(); err != nil {
			return n - len(p), err
		}
	}
	return n, nil
}

// pass passes on the complete lines, or the beginning of a line that is too long.
func (w *writer) pass() error {
	end := bytes.LastIndexAny(w.kept, "\r\n") + 1
	begin := bytes.LastIndex(w.kept[:end], []byte("-----BEGIN "))
	if begin >= 0 && end-begin < reach && !bytes.Contains(w.kept[begin:], []byte("-----END ")) {
		end = begin
	}
	if end > w.passed {
		_, err := w.w.Write(w.v.masked(w.kept[:end], w.passed, end))
		w.forget(end, end)
		return err
	}
	margin := w.v.margin()
	if len(w.kept)-w.passed < most+margin {
		return nil
	}
	end = len(w.kept) - margin
	_, err := w.w.Write(w.v.masked(w.kept, w.passed, end))
	w.forget(end-min(end, margin), end)
	return err
}

// forget drops the first bytes of what is kept, of which those before end are passed on.
func (w *writer) forget(drop, end int) {
	w.kept = append(w.kept[:0], w.kept[drop:]...)
	w.passed = end - drop
}

func (w *writer) Close() error {
	_, err := w.w.Write(w.v.masked(w.kept, w.passed, len(w.kept)))
	w.kept, w.passed = nil, 0
	return err
}

// margin is how many bytes on both sides of a byte tell whether it is part of a secret.
func (v *Secrets) margin() int {
	n := reach
	if v != nil {
		for _, list := range [][][]byte{v.substrings, v.wholeWords} {
			if len(list) > 0 {
				n = max(n, len(list[0]))
			}
		}
	}
	return n + context // also beside a value that must stand alone
}

// MaskFile overwrites each byte of a secret in a file with an asterisk, so that nothing in it
// moves.
func (v *Secrets) MaskFile(path string) error {
	text, err := os.ReadFile(path)
	if err == nil {
		if masked := v.masked(text, 0, len(text)); !bytes.Equal(masked, text) {
			err = os.WriteFile(path, masked, 0o600)
		}
	}
	if err != nil {
		return fmt.Errorf("secrets could not be removed: %w", err)
	}
	return nil
}
