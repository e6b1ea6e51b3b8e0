package main

import (
	"github.com/spf13/cobra"

	"github.com/goparity/goparity/internal/engine"
	"github.com/goparity/goparity/internal/fixture"
	"github.com/goparity/goparity/internal/serving"
	"github.com/goparity/goparity/internal/session"
)

type serveFlags struct {
	session.Serving
	resultFlags
}

func newServe() *cobra.Command {
	f := serveFlags{Serving: session.Serving{Live: true}}
	c := &cobra.Command{
		Use:   "serve FIXTURE [--url URL]",
		Short: "ask a server of OpenAI's API a fixture's cases, and judge its answers by the goldens",
		Long: "serve asks each case as it is written, token ids as ids, a prompt as text, messages by chat: one at a time,\n" +
			"from the middle of its text, all at once, and where that is right as streams, while others are answered, with\n" +
			"stops, logit_bias and penalties. Tokens, texts and log-probabilities must be the reference's, and with --draws\n" +
			"tokens that are drawn of its distribution.\n" +
			"Without --url the server that fixture.yaml names in serve is asked, or started, and ended with all that it\n" +
			"started. " + serving.KeyVariable + " is the key of a server that wants one.\n\n" +
			"exit codes: 0 all answers are right, 1 one is wrong, 2 usage, 3 a request got no answer that can be judged",
		Args: cobra.ExactArgs(1),
		RunE: f.run,
	}
	fl := c.Flags()
	fl.StringVar(&f.URL, "url", "", "`address` of a server that runs, http://HOST:PORT")
	fl.DurationVar(&f.Timeout, "timeout", serving.DefaultTimeout, "how long an answer may take")
	fl.IntVar(&f.Parallel, "parallel", serving.DefaultParallel, "how many requests are on their way at once")
	fl.IntVar(&f.Draws, "draws", 0, "how many tokens are drawn for each setting of sampling (default: serve.draws, or none)")
	fl.DurationVar(&f.Start, "start-timeout", serving.DefaultStart, "how long a server that is started may take until it is ready")
	fl.StringVar(&f.Device, "device", engine.CPU, "where the server computes, for the fixture's encodings: cpu or gpu")
	fl.StringVar(&f.Encoding, "encoding", "", "`dtype` in which the server computes (default: by the fixture's encodings)")
	f.add(c, reportName, "list every request, and what was asked to find a cause")
	return c
}

func (f *serveFlags) run(cmd *cobra.Command, args []string) error {
	switch {
	case f.Timeout <= 0 || f.Start <= 0:
		return usage("serve: --timeout %s, --start-timeout %s: want a time, 30s", f.Timeout, f.Start)
	case f.Parallel < 1:
		return usage("serve: --parallel %d: want a number from 1", f.Parallel)
	case f.Draws < 0 || f.Draws > 0 && f.Draws < fixture.MinDraws:
		return usage("serve: --draws %d: want %d or more, 0 for none", f.Draws, fixture.MinDraws)
	}
	if err := device(f.Device); err != nil {
		return err
	}
	cfg := session.Config{Fixtures: args, Context: cmd.Context()}
	return inSession(cfg, func(_ *session.Session, fx *session.Fixture) error {
		switch _, err := fx.Serve(f.Serving); {
		case codeOf(err) == exitUsage:
			return err
		case err != nil:
			return f.write(cmd.OutOrStdout(), failed(fx.Name(), err), "", err)
		}
		return f.write(cmd.OutOrStdout(), fx.ServeReport(), "", nil)
	})
}
