package dump

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The kinds of execution paths.
const (
	OnePass = "one-pass" // all tokens of a sequence in one forward pass: the path of the goldens
	Decode  = "decode"
	Chunked = "chunked"
	Turns   = "turns"
	Batch   = "batch"
	Padding = "padding"
	Prefix  = "prefix"
	Repeat  = "repeat"
	Lengths = "lengths"
	Mask    = "mask"
)

// Left and Right are the sides of padding.
const (
	Left  = "left"
	Right = "right"
)

// Path is the name of an execution path.
type Path struct {
	Kind    string
	Side    string // of padding
	Numbers []int  // those of the name; nil for its defaults
}

// Counts have at most nine digits, so that they fit an int everywhere.
var pathPattern = regexp.MustCompile(strings.ReplaceAll(
	`^(one-pass|decode(:N)?|chunked:N|turns(:N)?|batch(:N)?|padding:(left|right)|prefix|repeat:N|lengths(:N(,N)*)?|mask)$`, "N",
	"[1-9][0-9]{0,8}"))

const pathWant = "one-pass, decode, decode:N, chunked:N, turns, turns:N, batch, batch:N, padding:left, padding:right, prefix, repeat:N, " +
	"lengths, lengths:N,N,… or mask, each N from 1"

// ParsePath parses the name of an execution path. The empty name is OnePass.
func ParsePath(name string) (p Path, err error) {
	if name == "" {
		return Path{Kind: OnePass}, nil
	}
	if !pathPattern.MatchString(name) {
		return p, fmt.Errorf("path is %q: want %s", name, pathWant)
	}
	kind, rest, _ := strings.Cut(name, ":")
	p.Kind = kind
	switch {
	case kind == Padding:
		p.Side = rest
	case rest != "":
		for n := range strings.SplitSeq(rest, ",") {
			number, err := strconv.Atoi(n)
			if err != nil {
				return p, fmt.Errorf("path is %q: %w", name, err)
			}
			p.Numbers = append(p.Numbers, number)
		}
	}
	return p, nil
}

// Generated stands for the name of a path in that of a case of which the text after the prompt is run,
// "short@generation".
const Generated = "generation"

// Slug is the name of a path in names of files and subtests: "chunked-4".
func Slug(path string) string { return strings.NewReplacer(":", "-", ",", "-").Replace(path) }

// PathCase is the name of a case that is run along a path, in jobs, dumps and goldens:
// "short@chunked-4", and "@batch" for all cases together.
func PathCase(caseName, path string) string { return caseName + "@" + Slug(path) }

// CutPathCase returns the case in a name that PathCase made, and whether it made it.
func CutPathCase(name string) (caseName string, ofPath bool) {
	caseName, _, ofPath = strings.Cut(name, "@")
	return caseName, ofPath
}

// PassItem is the part of one sequence that a forward pass fed: its tokens From ≤ i < To.
type PassItem struct {
	Sequence     int  `json:"sequence"` // index in token_ids
	From         int  `json:"from"`
	To           int  `json:"to"`
	Fresh        bool `json:"fresh,omitempty"`         // the sequence begins again with an empty cache
	CachedTokens int  `json:"cached_tokens,omitempty"` // before From, in the prefix cache; only a sequence's first item
	// Hidden are tokens that were fed after To and that the mask hides, of the path mask.
	Hidden []int `json:"hidden,omitempty"`
}

// String is "sequence 0 tokens 4–7", both ends included, and "fresh" or the number of cached
// tokens.
func (p PassItem) String() string {
	s := fmt.Sprintf("sequence %d tokens %d–%d", p.Sequence, p.From, p.To-1)
	if p.Fresh {
		s += " fresh"
	}
	if p.CachedTokens > 0 {
		s += fmt.Sprintf(" after %d cached", p.CachedTokens)
	}
	return s
}

// checkPasses follows the cache of each sequence through the forward passes.
func (i *Info) checkPasses() error {
	var c checks
	tokens, err := i.sequences()
	c.within(err, "passes")
	c.want(len(i.Passes) > 0, "passes is empty: list the forward passes, or leave it out")
	cached := map[int]int{} // by sequence, tokens in its cache
	for k, pass := range i.Passes {
		c.want(len(pass) > 0, "passes[%d] feeds no sequence: leave it out", k)
		fed := map[int]bool{}
		for n, item := range pass {
			c.within(item.check(tokens, cached, fed), "passes[%d][%d]", k, n)
			fed[item.Sequence], cached[item.Sequence] = true, item.To
		}
	}
	return c.err
}

// check requires tokens that the sequence has, from where its cache ends.
func (p PassItem) check(tokens [][]int, cached map[int]int, fed map[int]bool) error {
	if p.Sequence < 0 || p.Sequence >= len(tokens) {
		return fmt.Errorf("sequence is %d, token_ids has %d: want 0 to %d", p.Sequence, len(tokens), len(tokens)-1)
	}
	end, again := cached[p.Sequence]
	switch {
	case p.Fresh:
		end = 0
	case !again:
		end = p.CachedTokens
	}
	switch n := len(tokens[p.Sequence]); {
	case p.From < 0 || p.To <= p.From || p.To > n:
		return fmt.Errorf("from is %d and to is %d: want 0 ≤ from < to ≤ %d, the tokens of sequence %d in token_ids; to is exclusive",
			p.From, p.To, n, p.Sequence)
	case p.CachedTokens < 0 || p.CachedTokens > 0 && (p.Fresh || again):
		return fmt.Errorf("cached_tokens is %d: want a number of tokens before the first item of sequence %d, whose cache is not fresh",
			p.CachedTokens, p.Sequence)
	case p.From != end:
		return fmt.Errorf(`from is %d, the cache of sequence %d holds %d tokens: `+
			`want from %d, or "fresh": true for a sequence that begins again at 0`, p.From, p.Sequence, end, end)
	case fed[p.Sequence]:
		return fmt.Errorf("sequence %d is twice in one pass: want one item for each sequence", p.Sequence)
	}
	return nil
}

// sequences returns token_ids as a list for each sequence.
func (i *Info) sequences() (tokens [][]int, err error) {
	if len(i.TokenIDs) > 0 {
		err = json.Unmarshal(i.TokenIDs, &tokens)
	}
	if err != nil || len(tokens) == 0 {
		return nil, errors.New("token_ids is missing or has another form: want a list for each sequence, " +
			"[[1, 15, 7], …]")
	}
	return tokens, nil
}

// checkMask requires rows of one length, of zeros and ones, one for each sequence.
func checkMask(key string, mask [][]int) error {
	var c checks
	tokens := 0
	for i, row := range mask {
		c.want(len(row) == len(mask[0]), "%s[%d] has %d tokens, %s[0] has %d: want rows of one length, padding included",
			key, i, len(row), key, len(mask[0]))
		for j, v := range row {
			if v != 0 && v != 1 {
				c.fail("%s[%d][%d] is %d: want 0 for padding, 1 for a token", key, i, j, v)
			}
			tokens += v
		}
	}
	c.want(len(mask) == 0 || tokens > 0, "%s has no token, only padding: want 1 for each token that was run", key)
	return c.err
}

// checkSteps requires a step for each forward pass, named by its number, and no other.
func (r *Run) checkSteps() error {
	var c checks
	steps, n := r.Steps(), len(r.Info.Passes)
	for step := range r.Info.PadMasks {
		c.want(slices.Contains(steps, step),
			"pad_masks has step %q, the dump has none: want a mask for a step that was recorded", step)
	}
	for k := range n {
		step := strconv.Itoa(k)
		c.want(slices.Contains(steps, step),
			"passes[%d] has no tensors: want a step %q in the dump, one for each forward pass", k, step)
	}
	for _, s := range steps {
		k, err := strconv.Atoi(s)
		known := err == nil && k >= 0 && k < n && strconv.Itoa(k) == s
		c.want(known || r.Info.Passes == nil,
			"step %q belongs to none of the %d forward passes of passes: want steps 0 to %d", s, n, n-1)
	}
	return c.err
}

// ErrUnjudged says that a run was recorded along an execution path, where one pass is wanted.
var ErrUnjudged = errors.New("only parity compare judges such a run, parity show prints it")

// Judgeable refuses a run whose rows are not those of one forward pass over one sequence.
func (i *Info) Judgeable() error {
	var c checks
	c.want(i.Path == "" || i.Path == OnePass, "path is %q, not %s: %w", i.Path, OnePass, ErrUnjudged)
	c.want(len(i.PadMasks) == 0, "pad_masks has padding after the first step: %w", ErrUnjudged)
	if c.err != nil || i.Passes == nil {
		return c.err
	}
	tokens, err := i.sequences()
	if err != nil {
		return err
	}
	whole := PassItem{To: len(tokens[0]), Fresh: i.Passes[0][0].Fresh}
	c.want(len(tokens) == 1 && len(i.Passes) == 1 && len(i.Passes[0]) == 1 && reflect.DeepEqual(i.Passes[0][0], whole),
		"passes is more or less than one forward pass over one whole sequence: %w", ErrUnjudged)
	return c.err
}

// AlongPath reports whether only the run's passes tell which token each of its rows is.
func (i *Info) AlongPath() bool { return errors.Is(i.Judgeable(), ErrUnjudged) }
