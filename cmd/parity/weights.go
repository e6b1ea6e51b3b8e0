package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/goparity/goparity/internal/weights"
)

type weightsFlags struct {
	configs              []string // of REF, then of CAND
	json, adapter, names string
}

func newWeights() *cobra.Command {
	var f weightsFlags
	c := &cobra.Command{
		Use:   "weights REF CAND",
		Short: "are the weights of a file, or those that an engine loaded, the checkpoint's?",
		Long: "weights joins two sets of weights by their names and values, and says of each whether it is equal, equal after\n" +
			"a known step (cast, dequantised, transposed, interleaved, fused, split, stacked, tied, norm + 1, a folded scale, …),\n" +
			"quantised within what its format can do, different, missing or unused. A step counts if all weights of the role\n" +
			"have it.\n\n" +
			"REF and CAND are a .safetensors file, its index.json, a .gguf, .pt or .npz file, or the folder of a model.\n\n" +
			"exit codes: 0 all are the reference's, 1 one is not, 3 they could not be read or joined",
		Args: cobra.ExactArgs(2),
		RunE: f.run,
	}
	c.Flags().StringArrayVar(&f.configs, "config", nil, "config.json `file` of REF, given twice: of CAND, too")
	c.Flags().StringVar(&f.adapter, "adapter", "", "`folder` of a LoRA adapter that CAND must have merged (default: the one in the folder REF)")
	c.Flags().StringVar(&f.names, "names", "", "YAML `file` with names as in fixture.yaml: which layers belong together, where names and values do not tell")
	addJSON(c, &f.json, "the result")
	return c
}

func (f *weightsFlags) run(cmd *cobra.Command, args []string) (err error) {
	if len(f.configs) > 2 {
		return usage("weights: --config is given %d times: want one for REF, then one for CAND", len(f.configs))
	}
	var opt weights.Options
	if f.names != "" {
		m, err := readNames(f.names)
		if err != nil {
			return err
		}
		opt.Rules = m.Names
	}
	var sides [2]*weights.Side
	for i, config := range append(f.configs, "", "")[:2] {
		if sides[i], err = weights.Open(args[i], config); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, sides[i].Close()) }()
	}
	if f.adapter != "" {
		opt.Adapter, err = weights.OpenAdapter(f.adapter)
	} else {
		opt.Adapter, err = weights.FindAdapter(args[0])
	}
	if err != nil {
		return err
	}
	progress, end := progress(cmd.ErrOrStderr(), "comparing", worthALine)
	opt.Progress = progress
	report, err := weights.Compare(cmd.Context(), sides[0], sides[1], opt)
	end()
	if err != nil {
		return err
	}
	stdout := cmd.OutOrStdout()
	if f.json != "-" {
		err = report.Text(stdout)
	}
	switch err = errors.Join(err, writeJSON(f.json, stdout, report)); {
	case err != nil:
		return err
	case report.Wrong():
		return errMismatch
	case !report.Pass:
		return errInfra
	}
	return nil
}
