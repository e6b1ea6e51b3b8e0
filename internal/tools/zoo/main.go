// Command zoo judges parity compare by a folder of recorded cases whose answers are known. Every
// case is compared twice: its two dumps alone, unless -full is given, and with everything else that a user may have.
//
//	zoo [-strict] [-clean] [-full] [-names] [-score FILE [-update]] [-parity FILE] [-match REGEXP] DIR
//
// A case is a folder with truth.json, ref and cand. With -names, parity names proposes rules for
// each case first, which compare obeys: whether they are right is part of the score. The exit code is 1 if a comparison could not be
// made (or, with -strict, if a verdict, a place or a rule is wrong, a wrong cause is proven or a clean
// pair is given one; or, with -clean, if a clean pair fails or is given a cause; or, with -score, if the
// score is not the one that FILE keeps) and 2 on wrong usage.
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
)

func main() {
	var o options
	flag.StringVar(&o.parity, "parity", "parity", "the command to judge")
	match := flag.String("match", "", "only the cases whose name matches")
	flag.BoolVar(&o.strict, "strict", false, "fail on a wrong verdict, place, rule or proof")
	flag.BoolVar(&o.clean, "clean", false, "fail if a clean pair fails or is given a cause")
	flag.BoolVar(&o.full, "full", false, "compare with everything that a user may have, and not the dumps alone")
	flag.BoolVar(&o.names, "names", false, "let parity names propose rules first, and judge them, too")
	flag.StringVar(&o.kept, "score", "", "file that keeps exceptions and totals: fail if they are others")
	flag.BoolVar(&o.update, "update", false, "write the score to the file of -score")
	flag.Parse()
	only, err := regexp.Compile(*match)
	if err != nil || flag.NArg() != 1 || o.update && o.kept == "" || *match != "" && o.kept != "" {
		fmt.Fprintln(os.Stderr,
			"usage: zoo [-strict] [-clean] [-full] [-names] [-score FILE [-update]] [-parity FILE] [-match REGEXP] DIR, "+
				"where a kept score is that of all cases")
		os.Exit(2)
	}
	ok, err := o.judge(flag.Arg(0), only)
	if err != nil {
		fmt.Fprintf(os.Stderr, "zoo: %v\n", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// options are what is judged, and what is good enough.
type options struct {
	parity        string // the command
	strict, clean bool
	full          bool   // with all inputs, and not the dumps alone
	names         bool   // parity names proposes rules first
	kept          string // a file
	update        bool
}

// judge prints the score, or only the totals of one that is kept, and reports whether it is good
// enough.
func (o options) judge(dir string, only *regexp.Regexp) (bool, error) {
	s, err := o.run(dir, only)
	if err != nil {
		return false, err
	}
	if o.kept == "" || s.errors() {
		fmt.Print(s)
	} else {
		fmt.Print(s.totals())
	}
	switch {
	case s.errors():
		return false, nil
	case o.clean && s.accusations() != "":
		return false, fmt.Errorf("clean pairs are accused:\n%s", s.accusations())
	case o.update:
		return true, os.WriteFile(o.kept, []byte(s.kept()), 0o644)
	case o.kept != "":
		old, err := os.ReadFile(o.kept)
		if err != nil {
			return false, fmt.Errorf("%w: -update writes it", err)
		}
		if d := diff(string(old), s.kept()); d != "" {
			return false, fmt.Errorf("the score is not the one in %s:\n%sIf the new one is right, "+
				"keep it: make score-update", o.kept, d)
		}
	}
	return !o.strict || s.strict(), nil
}
