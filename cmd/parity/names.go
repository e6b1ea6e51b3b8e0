package main

import (
	"cmp"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/internal/mapfile"
	"github.com/goparity/goparity/internal/match"
	"github.com/goparity/goparity/internal/sanitize"
	"github.com/goparity/goparity/internal/setting"
)

type namesFlags struct {
	inputFlags
	out, json string
}

func newNames() *cobra.Command {
	var f namesFlags
	c := &cobra.Command{
		Use:   "names A B",
		Short: "propose the rules that join two dumps whose layers have names of their own",
		Long: "names finds out which layer of the reference's dump is which of the candidate's: by value (equal tensors\n" +
			"are the same tensor), by the names of what it found in other blocks, and behind an error by the order and\n" +
			"the shapes. It says how sure each rule is, and lists what is ambiguous instead of guessing.\n\n" +
			"certain   all that the rule joins holds equal values\n" +
			"likely    some of it does, the rest is called alike\n" +
			"possible  no value agrees: place in the order, shape and name\n\n" +
			"exit codes: 0 rules were found or none is needed, 3 nothing shows that the two runs are of one model",
		Args: cobra.MaximumNArgs(2),
		PreRunE: func(_ *cobra.Command, args []string) error {
			return cmp.Or(f.positional("names", args), f.refuseOverwrite(f.out, f.json))
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := f.propose()
			if err != nil {
				return err
			}
			return f.write(cmd.OutOrStdout(), p)
		},
	}
	f.addPair(c)
	f.addAssume(c)
	c.Flags().StringVarP(&f.out, "output", "o", "", "write the rules to this `file`, for parity compare --names or the names of a fixture")
	addJSON(c, &f.json, "what was found")
	return c
}

// propose finds the rules of one case that join all.
func (f *namesFlags) propose() (p *match.Proposal, err error) {
	in, err := f.open(io.Discard)
	defer in.close()
	if err != nil {
		return nil, err
	}
	cases, err := in.pair()
	if err != nil {
		return nil, err
	}
	err = mapfile.Guard(func() (err error) { p, err = cases[0].Propose(in.opt.Match); return err })
	if err == nil && p.Foreign != "" {
		err = fmt.Errorf("no rules: %s", p.Foreign)
	}
	if err == nil {
		_, err = joinAll(cases, in.opt.Match, p)
	}
	return p, err
}

func (f *namesFlags) write(stdout io.Writer, p *match.Proposal) error {
	err := writeOutput(f.out, stdout, func(w io.Writer) error { _, err := io.WriteString(w, p.YAML()); return err })
	if err != nil {
		return err
	}
	err = writeJSON(f.json, stdout, struct {
		Schema int `json:"schema"`
		*match.Proposal
	}{1, p})
	if err == nil && f.json != "-" && f.out != "-" {
		f.print(stdout, p)
	}
	return err
}

func (f *namesFlags) print(w io.Writer, p *match.Proposal) {
	if len(p.Rules) == 0 {
		fmt.Fprintf(w, "no rule is needed: the names join %d layers\n", p.Joined)
	} else {
		fmt.Fprintf(w, "%d rules; %d layers of the golden are joined\n", len(p.Rules), p.Joined)
	}
	for _, r := range p.Rules {
		fmt.Fprintf(w, "  %-8s  %s\n            %s\n", r.Sure, sanitize.Line(r.String()), r.Reason)
	}
	for _, a := range p.Ambiguous {
		fmt.Fprintf(w, "ambiguous: golden %s; candidate %s: %s\n", sanitize.Line(label.Few(a.Golden)), sanitize.Line(label.Few(a.Candidate)), sanitize.Line(a.Why))
	}
	only := func(who string, left []match.Left) {
		var list []string
		for _, l := range left {
			list = append(list, l.Layer)
		}
		if list != nil {
			fmt.Fprintf(w, "only the %s has %s\n", who, sanitize.Line(label.Few(list)))
		}
	}
	only("golden", p.Golden)
	only("candidate", p.Actual)
	if f.out == "" {
		return
	}
	fmt.Fprintf(w, "written: %s\n", sanitize.Line(f.out))
	if len(p.Rules) > 0 {
		in := f.Inputs
		in.Names = f.out
		fmt.Fprintf(w, "next: %s\n", setting.Command(append([]string{"parity", "compare"}, in.Args()...)...))
	}
}
