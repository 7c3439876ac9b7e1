// Command gen writes lockkeeper.pb.go from lockkeeper.proto. It compiles with a protobuf compiler written in Go, so no
// protoc has to be installed, and it is a module of its own, so that Lockkeeper does not have its dependencies.
//
// It runs in its own folder; see the go:generate line in messages.go.
package main

import (
	"bytes"
	"context"
	"fmt"
	"go/format"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/linker"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

const (
	// registered is the path under which protobuf knows the file, in this process and in every process that it talks
	// to.
	registered = "lockkeeper/v1/lockkeeper.proto"
	input      = "../../lockkeeper.proto"
	output     = "../../lockkeeper.pb.go"
	mainModule = "../../.."
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("gen: ")
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	file, err := compile()
	if err != nil {
		return err
	}
	src, err := generate(file)
	if err != nil {
		return err
	}
	src, err = redact(src, file)
	if err != nil {
		return err
	}
	return os.WriteFile(output, src, 0o644)
}

// compile reads lockkeeper.proto and what it imports: actor.proto from the
// proto.actor version that the main module requires, Google's files from the
// compiler.
func compile() (linker.File, error) {
	dir, err := command(mainModule, nil, "go", "list", "-find", "-f", "{{.Dir}}", "github.com/asynkron/protoactor-go/actor")
	if err != nil {
		return nil, err
	}
	paths := map[string]string{
		registered:    input,
		"actor.proto": filepath.Join(strings.TrimSpace(string(dir)), "actor.proto"),
	}
	compiler := protocompile.Compiler{
		Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{
			Accessor: func(path string) (io.ReadCloser, error) {
				name, ok := paths[path]
				if !ok {
					return nil, os.ErrNotExist
				}
				return os.Open(name)
			},
		}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	files, err := compiler.Compile(context.Background(), registered)
	if err != nil {
		return nil, err
	}
	return files[0], nil
}

// generate hands the compiled file to protoc-gen-go and returns its answer.
func generate(file linker.File) ([]byte, error) {
	request, err := proto.Marshal(&pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{registered},
		ProtoFile:      withImports(nil, file, map[string]bool{}),
	})
	if err != nil {
		return nil, err
	}
	answer, err := command(".", request, "go", "tool", "protoc-gen-go")
	if err != nil {
		return nil, err
	}
	var response pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(answer, &response); err != nil {
		return nil, err
	}
	if response.Error != nil {
		return nil, fmt.Errorf("protoc-gen-go: %s", response.GetError())
	}
	if n := len(response.File); n != 1 {
		return nil, fmt.Errorf("protoc-gen-go wrote %d files, want 1", n)
	}
	return []byte(response.File[0].GetContent()), nil
}

// withImports appends file to list after everything that it imports.
func withImports(list []*descriptorpb.FileDescriptorProto, file protoreflect.FileDescriptor,
	seen map[string]bool) []*descriptorpb.FileDescriptorProto {
	if seen[file.Path()] {
		return list
	}
	seen[file.Path()] = true
	for i := range file.Imports().Len() {
		list = withImports(list, file.Imports().Get(i).FileDescriptor, seen)
	}
	return append(list, protoutil.ProtoFromFileDescriptor(file))
}

// stringMethod matches the String method that protoc-gen-go writes for a message.
var stringMethod = regexp.MustCompile(`func \(x \*(\w+)\) String\(\) string \{\n\treturn protoimpl\.X\.MessageStringOf\(x\)\n\}\n`)

// redact keeps fields marked with debug_redact out of logs, which protoc-gen-go does not do: String goes through the
// function redacted, LogValue gives slog the same text, and encoding/json, which slog's JSON handler uses for a message
// inside another value, skips the fields. This loses nothing: messages are written as JSON by protojson, which ignores
// tags.
func redact(src []byte, file protoreflect.FileDescriptor) ([]byte, error) {
	messages := file.Messages()
	if n := len(stringMethod.FindAll(src, -1)); n != messages.Len() {
		return nil, fmt.Errorf("found %d String methods for %d messages", n, messages.Len())
	}
	src = stringMethod.ReplaceAll(src, []byte(`func (x *$1) String() string {
	return redacted(x)
}

// LogValue implements slog.LogValuer.
func (x *$1) LogValue() slog.Value {
	return slog.StringValue(redacted(x))
}
`))
	src = bytes.Replace(src, []byte("import (\n"), []byte("import (\n\tslog \"log/slog\"\n"), 1)
	for i := range messages.Len() {
		fields := messages.Get(i).Fields()
		for j := range fields.Len() {
			field := fields.Get(j)
			if !field.Options().(*descriptorpb.FieldOptions).GetDebugRedact() {
				continue
			}
			if field.Kind() != protoreflect.StringKind {
				return nil, fmt.Errorf("%s: debug_redact is for strings", field.FullName())
			}
			tag := fmt.Sprintf(`json:"%s,omitempty"`, field.Name())
			src = bytes.ReplaceAll(src, []byte(tag), []byte(`json:"-"`))
		}
	}
	return format.Source(src)
}

// command runs a program in dir and returns what it printed.
func command(dir string, stdin []byte, name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Stdin = bytes.NewReader(stdin)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cmd, err)
	}
	return out, nil
}
