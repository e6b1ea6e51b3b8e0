package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"sync"
)

// run compares all cases of a folder whose name matches, as many at a time as there are processors.
func (o options) run(dir string, only *regexp.Regexp) (score, error) {
	truths, err := filepath.Glob(filepath.Join(dir, "*", "truth.json"))
	if err != nil {
		return nil, err
	}
	scratch, err := os.MkdirTemp("", "zoo")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(scratch)
	var s score
	for _, path := range truths {
		if name := filepath.Base(filepath.Dir(path)); only.MatchString(name) {
			s = append(s, result{name: name})
		}
	}
	if len(s) == 0 {
		return nil, fmt.Errorf("%s holds no case: no folder with a truth.json that matches", dir)
	}
	var wg sync.WaitGroup
	free := make(chan struct{}, runtime.NumCPU())
	for i := range s {
		wg.Go(func() {
			free <- struct{}{}
			s[i].judge(o, filepath.Join(dir, s[i].name), filepath.Join(scratch, s[i].name))
			<-free
		})
	}
	wg.Wait()
	return s, nil
}

// judge compares the case in a folder, alone and with all inputs, by the rules that parity proposes
// where names are judged. What is written begins with the path out.
func (r *result) judge(o options, folder, out string) {
	var want truth
	args, more, err := arguments(folder)
	if err == nil {
		err = readJSON(filepath.Join(folder, "truth.json"), &want)
	}
	var rules []string
	if err == nil && o.names {
		r.naming = &naming{truth: want}
		rules, err = r.naming.propose(o.parity, args, out+".yaml")
	}
	if err != nil {
		r.alone.err, r.full.err = err, err
		return
	}
	r.alone, r.full = answer{want: want.alone()}, answer{want: want}
	if o.names && r.naming.refused {
		r.alone.got.Verdict, r.full.got.Verdict = different, different
		return
	}
	args = append(args, rules...)
	r.full.got, r.full.err = compare(o.parity, slices.Concat(args, more), out+".json", want)
	if o.full {
		r.alone = r.full
	} else {
		r.alone.got, r.alone.err = compare(o.parity, args, out+".json", want)
	}
	if o.names {
		r.naming.rows = r.full.got.Layers
	}
}

// arguments returns what compare needs for a case, and what it may be given besides.
func arguments(folder string) (args, more []string, err error) {
	var about struct {
		Weights string `json:"reference_weights"`
	}
	if err := readJSON(filepath.Join(folder, "case.json"), &about); err != nil {
		return nil, nil, err
	}
	option := func(list []string, name, file string) []string {
		path := filepath.Join(folder, file)
		if _, err := os.Stat(path); file == "" || err != nil {
			return list
		}
		return append(list, name, path)
	}
	args = []string{"--golden", filepath.Join(folder, "ref"), "--actual", filepath.Join(folder, "cand")}
	args = option(args, "--pad-mask", "pad_mask.json")
	more = option(more, "--injected", "cand_injected")
	more = option(more, "--golden64", "ref64.safetensors")
	more = option(more, "--noise", "ref16")
	more = option(more, "--one-pass", "one_pass")
	more = option(more, "--config", "config.json")
	return args, option(more, "--weights", about.Weights), nil
}

// verdicts are those of parity compare, by its exit code.
var verdicts = map[int]string{0: "pass", 1: "fail", 3: "incomplete"}

// compare runs parity compare. A run that cannot be judged may be what is wanted. Another exit code that is no verdict, or has no report, is an error with
// what the command said.
func compare(parity string, args []string, out string, want truth) (r report, err error) {
	if err := os.Remove(out); err != nil && !errors.Is(err, os.ErrNotExist) {
		return r, err
	}
	text, failed := exec.Command(parity, append([]string{"compare", "--json", out}, args...)...).CombinedOutput()
	code := 0
	if exit := (*exec.ExitError)(nil); errors.As(failed, &exit) {
		code = exit.ExitCode()
	}
	if err := readJSON(out, &r); err != nil {
		if failed != nil {
			err = fmt.Errorf("%w: %.400s", failed, text)
		}
		return r, err
	}
	if refused := code == 3 && r.Verdict == "error" && want.Verdict == "error"; verdicts[code] != r.Verdict && !refused {
		return r, fmt.Errorf("exit code %d, but the report says %q: %.400s", code, r.Verdict, text)
	}
	return r, nil
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
