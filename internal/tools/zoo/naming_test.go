package main

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

// rowsOf makes rows of "golden tensor = candidate's tensor".
func rowsOf(pairs ...string) (rows []row) {
	for _, p := range pairs {
		golden, actual, both := strings.Cut(p, " = ")
		r := row{Golden: &tensor{golden}}
		if both {
			r.Actual = &tensor{actual}
		}
		rows = append(rows, r)
	}
	return rows
}

func TestJoins(t *testing.T) {
	var answer truth
	err := json.Unmarshal([]byte(`{"names": {"net.a": "model.a", "net.qkv": ["model.q", "model.k"], "net.b": "model.b"},
		"also_names": {"net.b": ["model.c"]}}`), &answer)
	if err != nil {
		t.Fatal(err)
	}
	all := []string{"model.a-output = net.a-output", "model.q-output = net.qkv-output",
		"model.k-output = net.qkv-output", "model.b-output = net.b-output"}
	for _, c := range []struct {
		rows   []string
		said   string
		right  int
		reason string
	}{
		{all, "", 4, "all as they should be"},
		{append(all[:3:3], "model.c-output_0 = net.b-output"), "", 4, "as right"},
		{append(all[:3:3], "model.b(2)-output.0 = net.b(2)-output"), "", 4, "calls and ports are no part of a layer"},
		{append(all[:2:2], all[3], "model.k-output"), "3 of 4 joined, not: net.qkv = model.k", 3,
			"a part of a fused layer has no partner"},
		{append(all[:3:3], "model.a-input_0 = net.b-input_0"),
			"3 of 4 joined, not: net.b = model.b; 1 WRONG: net.b = model.a", 3, "another layer"},
		{append(all, "model.x-output = net.a-output + net.y-output"), "2 WRONG: net.a = model.x, net.y = model.x", 4,
			"each part of a join counts, and what the truth does not know"},
	} {
		n := &naming{truth: answer, rows: rowsOf(c.rows...)}
		right, _, _ := n.joins()
		if said := n.String(); said != c.said || len(right) != c.right {
			t.Errorf("%s: %q with %d right, want %q with %d", c.reason, said, len(right), c.said, c.right)
		}
	}
}

func TestNames(t *testing.T) {
	const (
		bug   = `{"verdict": "fail", "first_bad_layer": "model.a", "names": {"net.a": "model.a"}}`
		said  = `{"verdict": "fail", "first_divergence": {"layer": "model.a"}, "layers": [{"golden": {"name": "model.a-output"}, "actual": {"name": "net.a-output"}}]}`
		amiss = `{"verdict": "fail", "first_divergence": {"layer": "model.a"}, "layers": [{"golden": {"name": "model.b-output"}, "actual": {"name": "net.a-output"}}]}`
		other = `{"verdict": "different", "names": {}}`
	)
	for _, c := range []struct {
		truth, rules, said string
		strict, err        bool
		named, reason      string
	}{
		{bug, "names: []", said, true, false, "names: 1 of 1 layers joined, 0 wrong; 0 of 0 pairs of different models refused\n",
			"rules are found and obeyed"},
		{bug, "names: []", amiss, false, false, "names: 0 of 1 layers joined, 1 wrong; 0 of 0 pairs of different models refused\n",
			"a wrong rule is not good enough, whatever the verdict"},
		{bug, "", "", false, false, "names: 0 of 1 layers joined, 0 wrong; 0 of 0 pairs of different models refused\n",
			"no rules for two runs of one model"},
		{strings.Replace(bug, "{", `{"may_refuse": true, "cause_id": "x", `, 1), "", "", true, false,
			"names: 0 of 0 layers joined, 0 wrong; 0 of 0 pairs of different models refused\n", "nothing is left that is alike"},
		{`{"verdict": "pass"}`, "none is needed", `{"verdict": "pass"}`, true, false,
			"names: 0 of 0 layers joined, 0 wrong; 0 of 0 pairs of different models refused\n", "no rule is needed, no file is given"},
		{other, "", "", true, false, "names: 0 of 0 layers joined, 0 wrong; 1 of 1 pairs of different models refused\n",
			"two models"},
		{other, "names: []", said, false, false, "names: 0 of 0 layers joined, 1 wrong; 0 of 1 pairs of different models refused\n",
			"rules for two models"},
		{bug, "names: [] # fail", "", false, true, "", "rules cannot fail"},
	} {
		dir := t.TempDir()
		writeCase(t, dir, map[string]string{"truth.json": c.truth, "case.json": "{}", "rules.yaml": c.rules, "said.json": c.said})
		s, err := options{parity: os.Args[0], names: true}.run(dir, regexp.MustCompile(""))
		if err != nil {
			t.Fatal(err)
		}
		if s.errors() != c.err || s.strict() != (c.strict && !c.err) || !c.err && s.named() != c.named {
			t.Errorf("%s: errors %v, strict %v, %s%s", c.reason, s.errors(), s.strict(), s, s.named())
		}
	}
}
