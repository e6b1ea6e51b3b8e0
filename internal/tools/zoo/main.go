// Command zoo runs parity compare over a folder of recorded cases and prints a table: what was planted in each case, and
// what parity says.
//
//	zoo [-full] [-strict] [-parity FILE] [-match REGEXP] DIR
//
// A case is a folder with truth.json, ref and cand. It exits with 1 if a comparison could not be made (or, with
// -strict, if a verdict or a place is wrong, a wrong cause is proven or a clean pair has one) and with 2 on wrong usage.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

func main() {
	var z zoo
	flag.StringVar(&z.parity, "parity", "parity", "the command")
	flag.BoolVar(&z.full, "full", false, "give the injected run, the float64 golden, weights and config too")
	match := flag.String("match", "", "only the cases whose name matches")
	strict := flag.Bool("strict", false, "fail on a wrong verdict or place")
	flag.Parse()
	only, err := regexp.Compile(*match)
	if err != nil || flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "usage: zoo [-full] [-strict] [-parity FILE] [-match REGEXP] DIR")
		os.Exit(2)
	}
	results, err := z.run(flag.Arg(0), only)
	if err != nil {
		fmt.Fprintf(os.Stderr, "zoo: %v\n", err)
		os.Exit(1)
	}
	if !table(os.Stdout, results, *strict) {
		os.Exit(1)
	}
}

// truth is the part of truth.json that is scored.
type truth struct {
	Verdict string   `json:"verdict"`
	Kind    string   `json:"kind"`
	Layer   string   `json:"first_bad_layer"`
	Also    []string `json:"also_right"`
	Cause   string   `json:"cause_id"`
	Second  string   `json:"second_bad_layer"` // of a second bug, whose cause is not scored
	Same    []string `json:"also_cause"`       // ids that say the same: their proof is not a wrong one
}

// verdict is the part of report.json that is scored.
type verdict struct {
	Verdict string `json:"verdict"`
	Kind    string `json:"kind"`
	First   *struct {
		Layer string `json:"layer"`
	} `json:"first_divergence"`
	Causes []cause `json:"causes"`
}

// cause is one entry of causes, the best first.
type cause struct {
	ID     string `json:"id"`
	Layer  string `json:"layer"`
	Proven bool   `json:"proven"`
}

// layer is the place, "" if there is none.
func (v verdict) layer() string {
	if v.First == nil {
		return ""
	}
	return v.First.Layer
}

// result is one case.
type result struct {
	name    string
	want    truth
	got     verdict
	err     error
	seconds float64
}

// scores are what score can be, from the best on.
var scores = []string{"ok", "wrong kind", "wrong place", "wrong verdict", "error"}

// score rates the answer. The place counts only where the truth names one.
func (r result) score() string {
	switch {
	case r.err != nil:
		return "error"
	case r.got.Verdict != r.want.Verdict:
		return "wrong verdict"
	case r.want.Layer != "" && r.got.layer() != r.want.Layer && !slices.Contains(r.want.Also, r.got.layer()):
		return "wrong place"
	case r.got.Kind != r.want.Kind:
		return "wrong kind"
	}
	return "ok"
}

// causeScores are what cause can be, from the best on.
var causeScores = []string{"proven", "first", "top 3", "unsolved", "wrong proof", "accused"}

// cause rates the causes: the planted one proven, named first, or among the first three. A proof of something else is wrong, and so is any
// cause for a clean pair. It is empty where nothing was planted and nothing said.
func (r result) cause() string {
	ids := r.got.Causes
	at := slices.IndexFunc(ids, func(c cause) bool { return c.ID == r.want.Cause })
	wrong := slices.ContainsFunc(ids, func(c cause) bool {
		return c.Proven && c.ID != r.want.Cause && !r.want.second(c.Layer) && !slices.Contains(r.want.Same, c.ID)
	})
	switch {
	case r.err != nil:
		return ""
	case r.want.Cause == "" && len(ids) == 0:
		return ""
	case r.want.Cause == "":
		return "accused"
	case wrong:
		return "wrong proof"
	case at >= 0 && ids[at].Proven:
		return "proven"
	case at == 0:
		return "first"
	case at > 0 && at < 3:
		return "top 3"
	}
	return "unsolved"
}

// second reports whether a layer is that of the second bug, or around it or inside.
func (t truth) second(layer string) bool {
	return t.Second != "" && (strings.HasPrefix(layer+".", t.Second+".") || strings.HasPrefix(t.Second, layer+"."))
}

// said lists the first causes, proven ones marked.
func (v verdict) said() string {
	var out []string
	for _, c := range v.Causes[:min(3, len(v.Causes))] {
		if c.Proven {
			c.ID += "!"
		}
		out = append(out, c.ID)
	}
	return strings.Join(out, " ")
}

type zoo struct {
	parity string
	full   bool
}

func (z zoo) run(dir string, only *regexp.Regexp) ([]result, error) {
	truths, err := filepath.Glob(filepath.Join(dir, "*", "truth.json"))
	if err != nil {
		return nil, err
	}
	scratch, err := os.MkdirTemp("", "zoo")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(scratch)
	var results []result
	for _, path := range truths {
		folder := filepath.Dir(path)
		if !only.MatchString(filepath.Base(folder)) {
			continue
		}
		start := time.Now()
		r := result{name: filepath.Base(folder)}
		if r.err = readJSON(path, &r.want); r.err == nil {
			r.got, r.err = z.compare(folder, filepath.Join(scratch, "report.json"))
		}
		r.seconds = time.Since(start).Seconds()
		results = append(results, r)
	}
	if len(results) == 0 {
		return nil, fmt.Errorf("%s holds no case: no folder with a truth.json that matches", dir)
	}
	return results, nil
}

// compare runs one case. Exit codes 0 and 1 are verdicts, all others an error with what the command said.
func (z zoo) compare(folder, out string) (v verdict, err error) {
	args := []string{"compare", "--golden", filepath.Join(folder, "ref"), "--actual", filepath.Join(folder, "cand"), "--json", out}
	option := func(name, path string) {
		if _, err := os.Stat(path); err == nil {
			args = append(args, name, path)
		}
	}
	option("--pad-mask", filepath.Join(folder, "pad_mask.json"))
	if z.full {
		var c struct {
			Weights string `json:"reference_weights"`
		}
		if err := readJSON(filepath.Join(folder, "case.json"), &c); err != nil {
			return v, err
		}
		option("--injected", filepath.Join(folder, "cand_injected"))
		option("--golden64", filepath.Join(folder, "ref64.safetensors"))
		option("--config", filepath.Join(folder, "config.json"))
		if c.Weights != "" {
			option("--weights", filepath.Join(folder, c.Weights))
		}
	}
	if err := os.Remove(out); err != nil && !errors.Is(err, os.ErrNotExist) {
		return v, err
	}
	text, err := exec.Command(z.parity, args...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == 1) {
		return v, fmt.Errorf("%w: %.400s", err, text)
	}
	code := 0
	if exit != nil {
		code = 1
	}
	if err := readJSON(out, &v); err != nil {
		return v, err
	}
	if (v.Verdict == "pass") != (code == 0) {
		return v, fmt.Errorf("exit code %d, but the report says %q", code, v.Verdict)
	}
	return v, nil
}

func readJSON(path string, to any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, to); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// table prints the results and the sums, and reports whether all is well.
func table(w io.Writer, results []result, strict bool) bool {
	sums, causes := map[string]int{}, map[string]int{}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "case\tscore\tplanted\tsaid\tcause\tplanted\tsaid\tseconds")
	for _, r := range results {
		score := r.score()
		sums[score]++
		causes[r.cause()]++
		said := place(r.got.Verdict, r.got.Kind, r.got.layer())
		if r.err != nil {
			said = strings.Join(strings.Fields(r.err.Error()), " ") // one line
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%.2f\n", r.name, score, place(r.want.Verdict, r.want.Kind, r.want.Layer), said,
			r.cause(), r.want.Cause, r.got.said(), r.seconds)
	}
	t.Flush()
	fmt.Fprintf(w, "%d cases", len(results))
	for _, score := range scores {
		fmt.Fprintf(w, ", %d %s", sums[score], score)
	}
	fmt.Fprint(w, "\ncauses")
	for i, score := range causeScores {
		fmt.Fprintf(w, "%s %d %s", strings.Repeat(",", min(i, 1)), causes[score], score)
	}
	fmt.Fprintln(w)
	return sums["error"] == 0 && (!strict || sums["wrong verdict"]+sums["wrong place"] == 0 && causes["wrong proof"]+causes["accused"] == 0)
}

func place(verdict, kind, layer string) string {
	if verdict == "pass" {
		return verdict
	}
	return fmt.Sprintf("%s %s %s", verdict, kind, layer)
}
