package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// naming is what parity made of a candidate with foreign names.
type naming struct {
	truth   truth
	refused bool  // no rules: nothing shows that the two runs are of one model
	rows    []row // of the comparison by its rules
}

// several is a list of names; a single one may stand without brackets.
type several []string

func (s *several) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*s = several{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(s))
}

// propose runs parity names on two dumps and returns the flag with its rules, if it found any. Exit
// code 3 says that the runs are not of one model.
func (n *naming) propose(parity string, dumps []string, file string) ([]string, error) {
	text, err := exec.Command(parity, append([]string{"names", "-o", file}, dumps...)...).CombinedOutput()
	_, stat := os.Stat(file)
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 3 {
		if n.refused = true; stat == nil {
			return nil, fmt.Errorf("exit code 3, and rules all the same: %.400s", text)
		}
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("names: %w: %.400s", err, text)
	}
	if stat != nil { // no rule is needed
		return nil, nil
	}
	return []string{"--names", file}, nil
}

// layerOf cuts port and call off the name of a tensor.
var layerOf = regexp.MustCompile(`(\(\d+\))?-(input|output|computed|tap)[^-]*$`)

// joins lists the layers that were joined, candidate = golden: the right ones, those that should
// have been, and those that should not. Each part of a fused layer counts.
func (n *naming) joins() (right, lost, wrong []string) {
	if n == nil {
		return nil, nil, nil
	}
	joined := map[string][]string{} // by the candidate's layer
	for _, r := range n.rows {
		if r.Golden == nil || r.Actual == nil {
			continue
		}
		golden := layerOf.ReplaceAllString(r.Golden.Name, "")
		for name := range strings.SplitSeq(r.Actual.Name, " + ") {
			actual := layerOf.ReplaceAllString(name, "")
			join := actual + " = " + golden
			joined[actual] = append(joined[actual], golden)
			if !slices.Contains(n.truth.Names[actual], golden) && !slices.Contains(n.truth.AlsoNames[actual], golden) &&
				!slices.Contains(wrong, join) {
				wrong = append(wrong, join)
			}
		}
	}
	for actual, goldens := range n.truth.Names {
		if n.refused && n.truth.MayRefuse {
			break
		}
		for _, golden := range goldens {
			as := func(name string) bool {
				return name == golden || slices.Contains(n.truth.AlsoNames[actual], name)
			}
			if join := actual + " = " + golden; slices.ContainsFunc(joined[actual], as) {
				right = append(right, join)
			} else {
				lost = append(lost, join)
			}
		}
	}
	slices.Sort(lost)
	slices.Sort(wrong)
	return right, lost, wrong
}

// String says what is not as it should be; nothing where all is.
func (n *naming) String() string {
	right, lost, wrong := n.joins()
	var said []string
	if len(lost) > 0 && (n == nil || !n.refused) {
		said = append(said, fmt.Sprintf("%d of %d joined, not: %s", len(right), len(right)+len(lost), few(lost)))
	}
	if len(wrong) > 0 {
		said = append(said, fmt.Sprintf("%d WRONG: %s", len(wrong), few(wrong)))
	}
	return strings.Join(said, "; ")
}

func few(list []string) string {
	const most = 3
	if len(list) > most {
		return strings.Join(list[:most], ", ") + ", …"
	}
	return strings.Join(list, ", ")
}

// named is a line on the layers that were joined, and on the pairs of different models.
func (s score) named() string {
	var right, lost, wrong, pairs, refused int
	for _, r := range s {
		if r.naming == nil {
			return ""
		}
		if r.naming.truth.Verdict == different {
			pairs++
			if r.naming.refused {
				refused++
			}
		}
		a, b, c := r.naming.joins()
		right, lost, wrong = right+len(a), lost+len(b), wrong+len(c)
	}
	return fmt.Sprintf("names: %d of %d layers joined, %d wrong; %d of %d pairs of different models refused\n",
		right, right+lost, wrong, refused, pairs)
}
