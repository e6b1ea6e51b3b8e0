package dump

import (
	"fmt"
	"regexp"
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
