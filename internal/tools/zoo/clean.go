package main

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// row is a tensor of report.json: its metrics and its limits by name, where they have one.
type row struct {
	Golden    *tensor        `json:"golden"` // nil if only the other side has it
	Actual    *tensor        `json:"actual"`
	Layer     string         `json:"layer"`
	Port      string         `json:"port"`
	Status    string         `json:"status"`
	Standard  map[string]any `json:"standard"`
	Tolerance map[string]any `json:"tolerance"`
}

// tensor is a side of a row: its own name there, "<layer>-<port>", joined ones with + between them.
type tensor struct {
	Name string `json:"name"`
}

// margin is the largest ratio of a metric to its limit among the rows that passed, and where: how
// near a clean pair comes to an accusation. Rows beyond their limits passed for another reason, such
// as an order that the next product undoes.
func (r report) margin() (worst float64, at string) {
	for _, l := range r.Layers {
		if l.Status != "pass" {
			continue
		}
		for name, limit := range l.Tolerance {
			limit, isLimit := limit.(float64)
			metric, isMetric := l.Standard[name].(float64)
			if ratio := metric / limit; isLimit && isMetric && ratio <= 1 && ratio > worst {
				worst, at = ratio, l.Layer+" "+l.Port
			}
		}
	}
	return worst, at
}

// clean returns the results of the clean pairs. A rewrite is none: its tensors do differ.
func (s score) clean() (c score) {
	for _, r := range s {
		if w := r.full.want; w.Verdict == "pass" && !w.Rewrite {
			c = append(c, r)
		}
	}
	return c
}

// accused reports whether a clean pair fails, or is given a cause.
func (r result) accused() bool {
	return !r.full.innocent() || !r.alone.innocent()
}

func (a answer) innocent() bool {
	return a.err == nil && a.place() == "ok" && a.cause() == ""
}

// accusations lists the clean pairs that are accused.
func (s score) accusations() string {
	var b strings.Builder
	for _, r := range s.clean() {
		if r.accused() {
			b.WriteString(r.String())
		}
	}
	return b.String()
}

// innocence is a line on the clean pairs of a score. The margin is that of the pairs not accused.
func (s score) innocence() string {
	pairs := s.clean()
	if len(pairs) == 0 {
		return ""
	}
	accused, worst, where := 0, 0.0, "none"
	for _, r := range pairs {
		if r.accused() {
			accused++
			continue
		}
		for _, a := range []answer{r.full, r.alone} {
			if m, at := a.got.margin(); m > worst {
				worst, where = m, r.name+" "+at
			}
		}
	}
	return fmt.Sprintf("clean: %d pairs, %d accused, worst margin %.2f %s\n", len(pairs), accused, worst, where)
}

// slack is by how much the worst margin may differ from the one that is kept: processors round in
// different ways.
const slack = 0.05

var innocence = regexp.MustCompile(`(?m)^(clean: .* worst margin )(\S+) .*$`)

// settle returns the text of a score with the worst margin of an older one, if that is near enough.
func settle(old, now string) string {
	was, is := innocence.FindStringSubmatch(old), innocence.FindStringSubmatch(now)
	if was == nil || is == nil || was[1] != is[1] {
		return now
	}
	a, err := strconv.ParseFloat(was[2], 64)
	b, err2 := strconv.ParseFloat(is[2], 64)
	if err != nil || err2 != nil || math.Abs(a-b) > slack {
		return now
	}
	return strings.Replace(now, is[0], was[0], 1)
}
