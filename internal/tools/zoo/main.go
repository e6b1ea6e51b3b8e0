// Command zoo judges parity compare by a folder of recorded cases whose answers are known. Every
// case is compared twice: its two dumps alone, and with everything else that a user may have.
//
//	zoo [-strict] [-score FILE [-update]] [-parity FILE] [-match REGEXP] DIR
//
// A case is a folder with truth.json, ref and cand. The exit code is 1 if a comparison could not be
// made (or, with -strict, if a verdict or a place is wrong, a wrong cause is proven or a clean pair
// is given one; or, with -score, if the score is not the one that FILE keeps) and 2 on wrong usage.
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
)

func main() {
	parity := flag.String("parity", "parity", "the command to judge")
	match := flag.String("match", "", "only the cases whose name matches")
	strict := flag.Bool("strict", false, "fail on a wrong verdict, place or proof")
	kept := flag.String("score", "", "file that keeps the score: fail if the score is another")
	update := flag.Bool("update", false, "write the score to the file of -score")
	flag.Parse()
	only, err := regexp.Compile(*match)
	if err != nil || flag.NArg() != 1 || *update && *kept == "" || *match != "" && *kept != "" {
		fmt.Fprintln(os.Stderr,
			"usage: zoo [-strict] [-score FILE [-update]] [-parity FILE] [-match REGEXP] DIR, "+
				"where a kept score is that of all cases")
		os.Exit(2)
	}
	ok, err := judge(*parity, flag.Arg(0), only, *strict, *kept, *update)
	if err != nil {
		fmt.Fprintf(os.Stderr, "zoo: %v\n", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// judge prints the score, or only the totals of one that is kept, and reports whether it is good
// enough.
func judge(parity, dir string, only *regexp.Regexp, strict bool, kept string, update bool) (bool, error) {
	s, err := run(parity, dir, only)
	if err != nil {
		return false, err
	}
	if kept == "" || s.errors() {
		fmt.Print(s)
	} else {
		fmt.Print(s.totals())
	}
	switch {
	case s.errors():
		return false, nil
	case update:
		return true, os.WriteFile(kept, []byte(s.String()), 0o644)
	case kept != "":
		old, err := os.ReadFile(kept)
		if err != nil {
			return false, fmt.Errorf("%w: make score-update writes it", err)
		}
		if d := diff(string(old), s.String()); d != "" {
			return false, fmt.Errorf("the score is not the one in %s:\n%sIf the new one is right, "+
				"keep it: make score-update", kept, d)
		}
	}
	return !strict || s.strict(), nil
}
