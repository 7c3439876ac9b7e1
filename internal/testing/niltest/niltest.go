// Package niltest calls the exported functions and methods of a package with nil and zero arguments, for tests: they
// must not panic, and those that return an error must return the one for wrong arguments.
//
//	api := niltest.API{
//		Dir: ".", Functions: map[string]any{"New": New}, Types: map[string][]any{"Lock": {(*Lock)(nil), &Lock{}, lock}},
//		Good: goodArgument, Invalid: ErrInvalid,
//	}
//	api.Check(t) // fails if an exported function is missing in it
package niltest

import (
	"errors"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// API describes the exported functions and types of a package.
type API struct {
	// Dir is the folder of the package.
	Dir string
	// Functions are its functions, by name. Types are values of its types, by the name of the type, on which the
	// methods are called, such as a nil pointer, a zero value, and a good value.
	Functions map[string]any
	Types     map[string][]any
	// Good returns a valid argument of that type for a function, or for a method as in "Lock.Name", and false if the
	// test has none: each argument in turn is nil while the others are good. The error must then say what is nil, so
	// that a call which is refused for another reason is noticed.
	Good func(name string, t reflect.Type) (reflect.Value, bool)
	// Invalid is the error for wrong arguments; if it is nil, any error is accepted.
	Invalid error
	// Skip are the functions and types that only this module uses.
	Skip []string
	// Accepts are the functions, and the methods as in "Lock.Name", for which a nil argument is valid.
	Accepts []string
}

// Check calls all functions and methods. A function, or a type with methods, that is not in the API is an error.
func (a *API) Check(t *testing.T) {
	t.Helper()
	functions, types := a.exported(t)
	for _, name := range functions {
		if slices.Contains(a.Skip, name) {
			continue
		}
		if f, ok := a.Functions[name]; ok {
			a.call(t, name, reflect.ValueOf(f), true)
		} else {
			t.Errorf("%s is not in the table", name)
		}
	}
	for _, name := range types {
		if slices.Contains(a.Skip, name) {
			continue
		}
		values := a.Types[name]
		if len(values) == 0 {
			t.Errorf("the type %s is not in the table", name)
		}
		for _, value := range values {
			a.methods(t, name, reflect.ValueOf(value))
		}
	}
}

// exported lists the functions, and the types with methods.
func (a *API) exported(t *testing.T) (functions, types []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(a.Dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	docs, err := doc.NewFromFiles(set, files, "x")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range docs.Funcs {
		functions = append(functions, f.Name)
	}
	for _, each := range docs.Types {
		for _, f := range each.Funcs {
			functions = append(functions, f.Name)
		}
		if len(each.Methods) > 0 {
			types = append(types, each.Name)
		}
	}
	return functions, types
}

// methods calls all methods of a value. If the value is nil or zero, every call must fail.
func (a *API) methods(t *testing.T, name string, value reflect.Value) {
	t.Helper()
	good := !value.IsZero() && (value.Kind() != reflect.Pointer || !value.Elem().IsZero())
	for i := range value.NumMethod() {
		a.call(t, name+"."+value.Type().Method(i).Name, value.Method(i), good)
	}
}

// call calls a function with zero arguments, and then with one nil argument among good ones, for each argument.
func (a *API) call(t *testing.T, name string, f reflect.Value, good bool) {
	t.Helper()
	kind := f.Type()
	zero := make([]reflect.Value, kind.NumIn())
	nils := 0
	for i := range zero {
		zero[i] = reflect.Zero(in(kind, i))
		if nillable(zero[i]) {
			nils++
		}
	}
	a.try(t, name, f, zero, nils > 0 || !good)
	for i := range zero {
		if args, ok := a.good(name, kind); ok && good && nillable(zero[i]) {
			args[i] = zero[i]
			if err := a.try(t, name, f, args, true); err != nil && !strings.Contains(err.Error(), "nil") {
				t.Errorf("%s(%v) returns an error that does not say what is nil: %v", name, args, err)
			}
		}
	}
	if args, ok := a.good(name, kind); ok && !good {
		a.try(t, name, f, args, true)
	}
}

// good returns good arguments; false if there are none.
func (a *API) good(name string, kind reflect.Type) (args []reflect.Value, all bool) {
	for i := range kind.NumIn() {
		arg, ok := a.Good(name, in(kind, i))
		if !ok {
			return nil, false
		}
		args = append(args, arg)
	}
	return args, true
}

// in returns the type of an argument; for the variadic parameter it is the type of an element.
func in(kind reflect.Type, i int) reflect.Type {
	if t := kind.In(i); kind.IsVariadic() && i == kind.NumIn()-1 {
		return t.Elem()
	}
	return kind.In(i)
}

func nillable(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Interface, reflect.Pointer, reflect.Func, reflect.Map, reflect.Slice, reflect.Chan:
		return true
	}
	return false
}

var errorType = reflect.TypeFor[error]()

// try makes a call, which must not panic. If the arguments are wrong and the function returns an error, it must be
// Invalid. try returns that error.
func (a *API) try(t *testing.T, name string, f reflect.Value, args []reflect.Value, wrong bool) (err error) {
	t.Helper()
	defer func() {
		if panicked := recover(); panicked != nil {
			t.Errorf("%s(%v) panics: %v", name, args, panicked)
		}
	}()
	out := f.Call(args)
	n := len(out)
	if n > 0 && out[n-1].Kind() == reflect.Func && out[n-1].Type().CanSeq2() { // the first error that it yields
		for _, out[n-1] = range out[n-1].Seq2() {
			break
		}
	}
	if n == 0 || out[n-1].Type() != errorType || !wrong || slices.Contains(a.Accepts, name) {
		return nil
	}
	err, _ = out[n-1].Interface().(error)
	if err == nil || a.Invalid != nil && !errors.Is(err, a.Invalid) || err.Error() == "" {
		t.Errorf("%s(%v) returns the error %v", name, args, err)
	}
	return err
}
