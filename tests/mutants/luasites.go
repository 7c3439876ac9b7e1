package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A luaToken is a word, a number, a string or an operator of Lua.
type luaToken struct {
	text       string
	start, end int
	// depth counts the brackets around it; a bracket has the depth of what is outside.
	depth int
	// first reports whether it is the first of its line.
	first bool
}

var luaLexeme = regexp.MustCompile(`^(?:--[^\n]*|\s+|[A-Za-z_]\w*|\d+(?:\.\d+)?|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|\.\.\.|\.\.|[=~<>]=|[-+*/%^#<>=(){}\[\];:,.])`)

func luaTokens(src []byte) ([]luaToken, error) {
	var tokens []luaToken
	depth, first := 0, true
	for at := 0; at < len(src); {
		text := string(luaLexeme.Find(src[at:]))
		switch {
		case text == "" || strings.HasPrefix(text, "--[["):
			return nil, fmt.Errorf("offset %d: not understood", at)
		case strings.TrimSpace(text) == "":
			first = first || strings.Contains(text, "\n")
		case !strings.HasPrefix(text, "--"):
			if strings.ContainsAny(text, ")}]") && len(text) == 1 {
				depth--
			}
			tokens = append(tokens, luaToken{text, at, at + len(text), depth, first})
			if strings.ContainsAny(text, "({[") && len(text) == 1 {
				depth++
			}
			first = false
		}
		at += len(text)
	}
	if depth != 0 {
		return nil, fmt.Errorf("brackets do not match")
	}
	return tokens, nil
}

// luaSites finds what to mutate in a Lua file. Each mutant is a program that compiles: a
// syntax error would be told from a failure by nobody.
func luaSites(src []byte) ([]site, error) {
	tokens, err := luaTokens(src)
	if err != nil {
		return nil, err
	}
	f := &luaFinder{src: src, tokens: tokens, negated: map[int]bool{}}
	for i := range tokens {
		f.visit(i)
	}
	return f.found, nil
}

type luaFinder struct {
	src    []byte
	tokens []luaToken
	found  []site
	// negated are the comparisons that are all of a condition: another == in place of ~=
	// would be the same mutant.
	negated map[int]bool
}

// replace replaces the tokens from one up to and without another.
func (f *luaFinder) replace(kind string, from, to int, replacement string) {
	f.found = append(f.found, in(f.src, kind, f.tokens[from].start, f.tokens[to-1].end, replacement))
}

func (f *luaFinder) text(from, to int) string {
	return string(f.src[f.tokens[from].start:f.tokens[to-1].end])
}

func (f *luaFinder) is(i int, words ...string) bool {
	return i >= 0 && i < len(f.tokens) && slices.Contains(words, f.tokens[i].text)
}

var luaSwapped = map[string]struct{ kind, operator string }{
	"<": {"boundary", "<="}, "<=": {"boundary", "<"},
	">": {"boundary", ">="}, ">=": {"boundary", ">"},
	"==": {"negate", "~="}, "~=": {"negate", "=="},
	"+": {"arithmetic", "-"}, "-": {"arithmetic", "+"},
	"true": {"constant", "false"}, "false": {"constant", "true"},
	"'0'": {"constant", "'1'"}, "'1'": {"constant", "'0'"},
}

func (f *luaFinder) visit(i int) {
	t := f.tokens[i]
	if t.first {
		f.deleteStatement(i)
	}
	if to, ok := luaSwapped[t.text]; ok && !f.unary(i) && !f.negated[i] {
		f.replace(to.kind, i, i+1, to.operator)
	}
	switch {
	case f.is(i, "if", "elseif"):
		then := f.upTo(i+1, t.depth, "then")
		f.replace("negate", i+1, then, "not ("+f.text(i+1, then)+")")
		if f.upTo(i+1, t.depth, "and", "or", "then") == then {
			for k := i + 1; k < then; k++ {
				f.negated[k] = f.tokens[k].depth == t.depth && f.is(k, "==", "~=")
			}
		}
	case f.is(i, "and", "or"):
		f.dropArms(i)
	case f.is(i, "'PEXPIRE'", "'PX'"):
		if end := f.upTo(i, t.depth); f.is(end, ")") && f.is(i+1, ",") {
			from := i + 2
			for k := from; k < end; k++ { // the last argument
				if f.is(k, ",") && f.tokens[k].depth == t.depth {
					from = k + 1
				}
			}
			f.replace("ttl", from, end, "2 * ("+f.text(from, end)+")")
		}
	case t.text[0] >= '0' && t.text[0] <= '9':
		if f.is(i-1, "[") && f.is(i-2, "KEYS", "ARGV") {
			return // a wrong key fails at once
		}
		if n, err := strconv.Atoi(t.text); err == nil {
			f.replace("constant", i, i+1, strconv.Itoa(n+1))
		}
	}
}

// unary reports whether a minus is a sign.
func (f *luaFinder) unary(i int) bool {
	return f.is(i, "-") && (i == 0 || f.is(i-1, "=", "==", "~=", "<", "<=", ">", ">=", "+", "-", "*", "/", "..", "(", "{", "[", ",", "return", "and", "or", "not"))
}

// upTo returns the first token from i on that is one of the words at that depth, or that
// closes the bracket around it.
func (f *luaFinder) upTo(i, depth int, words ...string) int {
	for ; i < len(f.tokens); i++ {
		if f.tokens[i].depth < depth || f.tokens[i].depth == depth && f.is(i, words...) {
			break
		}
	}
	return i
}

// dropArms leaves either side of an and, or of an or, away.
func (f *luaFinder) dropArms(i int) {
	depth := f.tokens[i].depth
	stops := []string{"then", "do", "end", "or", ",", ";", "=", "return", "if", "elseif", "while"}
	if f.is(i, "and") {
		stops = append(stops, "and")
	}
	right := i + 1
	for ; right < len(f.tokens); right++ {
		t := f.tokens[right]
		if t.depth < depth || t.depth == depth && (f.is(right, stops...) || t.first && !f.continued(right)) {
			break
		}
	}
	f.replace("logic", i, right, "")
	left := i
	for left > 0 {
		p := f.tokens[left-1]
		opens := p.depth == depth-1 && f.is(left-1, "(", "{", "[")
		if opens || p.depth == depth && f.is(left-1, stops...) {
			break
		}
		left--
	}
	f.replace("logic", left, i+1, "")
}

// continued reports whether the first token of a line goes on with the expression before.
func (f *luaFinder) continued(i int) bool {
	joins := []string{"and", "or", "==", "~=", "<", "<=", ">", ">=", "+", "*", "/", "..", "not"}
	return f.is(i, joins...) || f.is(i-1, joins...) || f.is(i-1, "-")
}

// deleteStatement deletes the statement that begins a line, if it is a call, an assignment
// or a return that ends with that line.
func (f *luaFinder) deleteStatement(i int) {
	t := f.tokens[i]
	if t.depth > 0 || f.is(i, ")", "}", "]") || i > 0 && f.continued(i) {
		return
	}
	end := i + 1
	for end < len(f.tokens) && (!f.tokens[end].first || f.tokens[end].depth > 0 || f.is(end, ")", "}", "]") || f.continued(end)) {
		end++
	}
	statement := f.tokens[i:end]
	for _, word := range statement {
		switch word.text {
		case "local", "function", "if", "elseif", "else", "for", "while", "do", "then", "end", "break", "repeat", "until":
			return
		}
	}
	f.replace("delete", i, end, "")
}
