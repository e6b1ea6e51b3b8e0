package serving

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
)

// page asks for a page of metrics; false where there is none.
func (c *client) page(ctx context.Context, address string) ([]byte, bool) {
	ctx, cancel := context.WithTimeout(ctx, min(c.timeout, metricsTime))
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, false
	}
	authorise(q)
	response, err := c.http.Do(q)
	if err != nil {
		return nil, false
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	return data, err == nil && response.StatusCode == http.StatusOK
}

// What pages call the tokens that a draft model proposed and those of them that were accepted: vLLM, llama.cpp and
// mistral.rs. MAX has a histogram of rates in percent, SGLang the rate of the last moment alone.
var (
	proposedTokens = regexp.MustCompile(`draft_tokens(_proposed)?_total$`)
	acceptedTokens = regexp.MustCompile(`(spec_decode_num_accepted_tokens|draft_tokens_accepted)_total$`)
	percentSum     = regexp.MustCompile(`acceptance_rate_per_position(_percent)?_sum$`)
	percentCount   = regexp.MustCompile(`acceptance_rate_per_position(_percent)?_count$`)
	momentary      = regexp.MustCompile(`spec_accept_rate$`)
)

// readMetrics reads what a page of metrics, as Prometheus has it, says of a draft model.
func readMetrics(page []byte) (d drafting, rate float64) {
	lines := bufio.NewScanner(bytes.NewReader(page))
	lines.Buffer(nil, maxAnswer)
	for lines.Scan() {
		name, value, ok := metric(lines.Text())
		switch {
		case !ok:
		case proposedTokens.MatchString(name), percentCount.MatchString(name):
			d.proposed += value
		case acceptedTokens.MatchString(name):
			d.accepted += value
		case percentSum.MatchString(name):
			d.accepted += value / 100
		case momentary.MatchString(name):
			rate = value
		}
	}
	return d, rate
}

// metric reads a line such as vllm:spec_decode_num_draft_tokens_total{engine="0"} 120.0.
func metric(line string) (name string, value float64, ok bool) {
	if strings.HasPrefix(line, "#") {
		return "", 0, false
	}
	name, rest, labelled := strings.Cut(line, "{")
	if labelled {
		rest = rest[strings.LastIndexByte(rest, '}')+1:]
	} else {
		name, rest, _ = strings.Cut(strings.TrimSpace(line), " ")
	}
	words := strings.Fields(rest)
	if len(words) == 0 {
		return "", 0, false
	}
	value, err := strconv.ParseFloat(words[0], 64)
	return name, value, err == nil && !math.IsNaN(value) && !math.IsInf(value, 0)
}
