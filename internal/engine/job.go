package engine

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goparity/goparity/internal/dump"
	"github.com/goparity/goparity/internal/label"
	"github.com/goparity/goparity/tensor"
)

// Engines: those that this package embeds, and any other program.
const (
	Torch   = "torch"
	MAX     = "max"
	MLX     = "mlx"
	Command = "command" // Options.Program
)

// Devices.
const (
	CPU = "cpu"
	GPU = "gpu"
)

// AttnImplementation is the setting of torch that chooses the kernel of the attention: "eager", which
// is the default, "sdpa", or another name that transformers knows.
const AttnImplementation = "attn_implementation"

// Observers. With Seen, what the model returns is recorded too (see Result.Returned); with Blind,
// it alone is recorded, from a model without hooks.
const (
	Seen  = "seen"
	Blind = "blind"
)

// FramesLines has a program say the places alone of the lines of source that made an operator, without their text.
const FramesLines = "lines"

// ProgramMode is the mode of a job of torch that records programs alone, of token ids, under fake
// tensors: no weights are read, and the dump has no tensors.
const ProgramMode = "program"

// schema is the version of the job file.
const schema = 1

// Model says what is run. Fixtures have it as model, and their goldens depend on all of it.
type Model struct {
	Path            string `json:"model,omitempty" yaml:"path,model"`  // hub id, or a folder if Job.Local
	Revision        string `json:"revision,omitempty" yaml:"revision"` // of a hub id
	Task            string `json:"task,omitempty" yaml:"task,text-generation|embeddings|module|text-classification|image-generation"`
	TrustRemoteCode bool   `json:"trust_remote_code,omitempty" yaml:"trust_remote_code"`
	Tokenizer       string `json:"tokenizer,omitempty" yaml:"tokenizer,model"` // hub id or folder; the model's own if empty
	Oracle          string `json:"oracle,omitempty" yaml:"oracle,file"`        // Python file with reference(spec) and candidate(spec)
	MaxLayers       int    `json:"max_layers,omitempty" yaml:"max_layers,layers"`
	// Overrides are by key or dotted path of config.json.
	Overrides map[string]any `json:"hf_config_overrides,omitempty" yaml:"hf_config_overrides"`
}

// Job is what an engine is told to do: one model, several cases. The engine loads and compiles the
// model once for all cases.
type Job struct {
	Engine string `json:"engine"` // Torch, MAX, MLX, a file of [File], or Command
	// EngineFile is the Python file of an engine of the user's own; empty for those of this package.
	EngineFile string `json:"engine_file,omitempty"`
	Out        string `json:"out"`   // folder to write; it must not exist yet
	Nonce      string `json:"nonce"` // Run makes one if it is empty

	Model
	Local    bool           `json:"local,omitempty"`         // Model.Path is a folder
	Device   string         `json:"device,omitempty"`        // CPU if empty
	Encoding string         `json:"encoding,omitempty"`      // torch: float32 if empty; max: its own choice
	Config   map[string]any `json:"engine_config,omitempty"` // settings of MAX, passed on as they are; of torch AttnImplementation
	// AllowMissing has patterns of weights that may be missing or left over.
	AllowMissing []string `json:"allow_missing,omitempty"`

	Capture Capture `json:"capture,omitzero"`
	Mode    string  `json:"mode,omitempty"` // dump.Standard if empty; dump.Injected needs Golden in each case; or ProgramMode
	// Activations rounds the inputs of products, as engines do whose products have quantised weights;
	// nil for none. Of torch.
	Activations *Activations `json:"activations,omitempty"`
	// KVType has the cache round the keys and values that it keeps; nil: it does not. Of torch.
	KVType *KVType `json:"kv_type,omitempty"`
	// Adapter is the folder of a LoRA adapter that is added at run time; "": none. Of torch.
	Adapter string `json:"adapter,omitempty"`
	// KVCache records the keys and values that the cache holds, as ports key_cache and value_cache of the
	// attention layers: the rows of the tokens that a forward pass fed. Of task text-generation.
	KVCache bool `json:"kv_cache,omitempty"`
	// Weights keeps what was loaded in the first case's dump, if it is at most so many bytes; less than 0
	// always, 0 never.
	Weights int64 `json:"weights,omitempty"`
	// WeightHashes keeps their hashes instead, however large they are.
	WeightHashes bool `json:"weight_hashes,omitempty"`
	// Program records what the reference ran (package program), as dump.ProgramFile beside each run.json.
	// Of torch, and of cases without Passes. Frames is what it says of the source: FramesLines, or all if empty.
	Program bool   `json:"program,omitempty"`
	Frames  string `json:"frames,omitempty"`
	// Observer is Seen or Blind, to find out whether hooks change what the model computes.
	Observer string `json:"observer,omitempty"`
	// SanityTokens is how many tokens the reference generates first, to check that it makes sense;
	// 0 is no check.
	SanityTokens int    `json:"sanity_tokens,omitempty"`
	SkipSanity   string `json:"skip_sanity,omitempty"` // why a failed sanity check is only a warning
	Cases        []Case `json:"cases"`
}

// KVType says what a cache makes of keys and values.
type KVType struct {
	Type string `json:"type" yaml:"type,int8|int4|float8_e4m3fn"` // KVInt8, KVInt4 or float8_e4m3fn
	// Of whole numbers: how many numbers of a head have one scale, and how it is chosen, see KVMLX.
	Group  int    `json:"group,omitempty" yaml:"group,1..65536"`
	Scheme string `json:"scheme,omitempty" yaml:"scheme,affine|symmetric|mlx"`
	// ExactPrefill says that the first forward pass reads what it was given, before that is rounded.
	ExactPrefill bool `json:"exact_prefill,omitempty"`
}

// What keys and values are rounded to, and how.
const (
	KVInt8, KVInt4 = "int8", "int4"

	// Beside affine, where the least number of a group becomes 0 and the largest 2^bits - 1, and symmetric,
	// where max|x| becomes 2^(bits-1) - 1: affine, with 0 and what is furthest from it kept, mlx.core.quantize.
	KVMLX = "mlx"
)

// Activations says that the inputs of linear layers are rounded, in blocks with a scale each.
type Activations struct {
	Rule    string   `json:"rule"`    // of Roundings
	Weights []string `json:"weights"` // of these layers, by their keys; those of tables are left out
}

// Roundings are the rules of Activations: ggml's q8_0 (blocks of 32 inputs, scale max|x|/127 as float16),
// its q8_K (blocks of 256, scale of float32), and float8 with a scale max|x|/448 for each token.
var Roundings = []string{"int8/32", "int8/256", tensor.F8E4M3FN.String()}

// Capture holds patterns (package label) of what is recorded; an empty list means everything. In MAX
// they are matched against names without the doubled words of its lists: layers.3, not
// layers.layers.3.
type Capture struct {
	Layers []string `json:"layers,omitempty"`
	Ports  []string `json:"ports,omitempty"` // output_0 also stands for its element output_0.1
}

// expressions are the patterns of a job as regular expressions, one each, so that engines need not
// parse patterns. An expression matches a whole name (fullmatch in Python) and has no anchors.
type expressions struct {
	Layers       []string `json:"layers,omitempty"`
	Ports        []string `json:"ports,omitempty"`
	AllowMissing []string `json:"allow_missing,omitempty"`
}

func (j Job) expressions() (e expressions, err error) {
	translate := func(patterns []string, expression func(*label.Pattern) string) (all []string) {
		for _, pattern := range patterns {
			p, wrong := label.CompilePattern(pattern)
			if wrong != nil {
				err = &Error{Class: ClassUsage, Msg: wrong.Error()}
				return nil
			}
			all = append(all, expression(p))
		}
		return all
	}
	e = expressions{translate(j.Capture.Layers, (*label.Pattern).Tail), translate(j.Capture.Ports, (*label.Pattern).Whole),
		translate(j.AllowMissing, (*label.Pattern).Tail)}
	return e, err
}

// Case is one input: one of Prompts, Messages and TokenIDs, or none of them for an oracle that
// makes its own input. Fixtures have what goldens depend on.
type Case struct {
	Name     string           `json:"name"`                            // also the name of its folder
	Prompts  []string         `json:"prompts,omitempty" yaml:"prompt"` // several are a batch
	Messages []dump.Message   `json:"messages,omitempty" yaml:"messages"`
	Tools    []map[string]any `json:"tools,omitempty" yaml:"tools"` // that the messages may call, as OpenAI's API has them
	// ChatTemplate is a file; the tokenizer's own if empty.
	ChatTemplate string  `json:"chat_template,omitempty" yaml:"chat_template,file"`
	TokenIDs     [][]int `json:"token_ids,omitempty" yaml:"token_ids,tokens"` // one list per sequence
	// Arbitrary says that TokenIDs are no text: a reference that goes on with nonsense is no doubt about it.
	Arbitrary bool `json:"arbitrary,omitempty"`
	// Images are files of each sequence, or names of a [Picture], which is drawn.
	Images [][]string `json:"images,omitempty" yaml:"images,images"`
	Steps  int        `json:"steps,omitempty" yaml:"steps,1..100000"` // forward passes; 0 is 1
	// Forced has the tokens that decode steps get, per sequence; the greedy choices if empty.
	Forced [][]int `json:"forced,omitempty"`
	Golden *Golden `json:"golden,omitempty"` // of an injected run

	// Path is the execution path, and Passes the forward passes of it over TokenIDs; none of both is
	// one pass, and Steps.
	Path   string            `json:"path,omitempty"`
	Passes [][]dump.PassItem `json:"passes,omitempty"`
}

// Golden has the tensors that an injected run puts in place of the inputs of layers, in step 0 of a
// case.
type Golden struct {
	File   string            `json:"file"`   // .safetensors, each tensor as the candidate lays it out
	Inputs []GoldenInput     `json:"inputs"` // the inputs to replace
	Left   map[string]string `json:"left"`   // the candidate's other inputs, "<layer>-<port>" → why not
}

// GoldenInput is one input of one layer.
type GoldenInput struct {
	Label  string `json:"label"`  // "<layer>-<port>" as the candidate recorded it in its standard run
	Name   string `json:"name"`   // of the tensor in the file
	Golden string `json:"golden"` // the golden's own label
}

// prepare checks the job, makes its paths absolute, because the engine may run in another folder,
// and adds a nonce if there is none.
func (j *Job) prepare() error {
	if j.Out == "" {
		return fmt.Errorf("engine: the job has no output folder")
	}
	if _, err := os.Lstat(j.Out); err == nil {
		return fmt.Errorf("engine: %s exists already: a run is written to a new folder, never over an old one", j.Out)
	}
	if len(j.Cases) == 0 {
		return fmt.Errorf("engine: the job has no cases")
	}
	seen := map[string]bool{}
	for _, c := range j.Cases {
		if !filepath.IsLocal(c.Name) || c.Name == "." || filepath.Base(c.Name) != c.Name || seen[c.Name] {
			return fmt.Errorf("engine: case %q: names of cases are names of folders, each used once", c.Name)
		}
		seen[c.Name] = true
	}
	var err error
	abs := func(path *string) {
		if *path != "" && err == nil {
			*path, err = filepath.Abs(*path)
		}
	}
	for _, path := range []*string{&j.Out, &j.Oracle, &j.EngineFile, &j.Adapter} {
		abs(path)
	}
	if j.Local {
		abs(&j.Path)
	}
	j.Cases = slices.Clone(j.Cases) // the caller's are not changed
	for i := range j.Cases {
		c := &j.Cases[i]
		abs(&c.ChatTemplate)
		if c.Golden != nil {
			golden := *c.Golden
			c.Golden = &golden
			abs(&golden.File)
		}
		c.Images = slices.Clone(c.Images)
		for k := range c.Images {
			c.Images[k] = slices.Clone(c.Images[k])
			for n, name := range c.Images[k] {
				if _, drawn := ParsePicture(name); drawn {
					c.Images[k][n] = filepath.Join(j.pictures(), name)
				}
				abs(&c.Images[k][n])
			}
		}
	}
	if err != nil {
		return fmt.Errorf("engine: %w", err)
	}
	if j.Nonce == "" {
		j.Nonce = rand.Text()
	}
	return nil
}

// Use sets the engine: one of [Names], or a Python file of an engine, which ends in .py. It returns false
// for another name.
func (j *Job) Use(name string) bool {
	if strings.HasSuffix(name, ".py") {
		j.Engine, j.EngineFile = strings.TrimSuffix(filepath.Base(name), ".py"), name
		return true
	}
	j.Engine = name
	return Requirements[name] != ""
}

// pictures is the folder of the pictures that are drawn for the job.
func (j Job) pictures() string { return j.Out + ".pictures" }

// draw draws them.
func (j Job) draw() error {
	for _, c := range j.Cases {
		for _, file := range slices.Concat(c.Images...) {
			p, drawn := ParsePicture(filepath.Base(file))
			if !drawn || filepath.Dir(file) != j.pictures() {
				continue
			}
			if err := os.MkdirAll(j.pictures(), 0o755); err != nil {
				return fmt.Errorf("engine: %w", err)
			}
			if err := os.WriteFile(file, p.PNG(), 0o644); err != nil {
				return fmt.Errorf("engine: %w", err)
			}
		}
	}
	return nil
}

// TakesImages reports whether an engine is given images: those of this package but the reference are
// given none. A user's own may take them.
func TakesImages(name string) bool { return name != MAX && name != MLX }

// write writes the job to a new file next to the output folder.
func (j Job) write() (path string, err error) {
	regexps, err := j.expressions()
	if err != nil {
		return "", err
	}
	data, err := json.MarshalIndent(struct {
		Schema int `json:"schema"`
		Job
		Expressions expressions `json:"expressions,omitzero"`
	}{schema, j, regexps}, "", " ")
	if err != nil {
		return "", fmt.Errorf("engine: job: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(j.Out), 0o755); err != nil {
		return "", fmt.Errorf("engine: %w", err)
	}
	path = j.Out + ".job.json"
	if err := os.WriteFile(path, data, 0o644); err != nil {
		return "", fmt.Errorf("engine: %w", err)
	}
	return path, nil
}
