/** A call of the playground as code in five languages. Each reads the key from the environment. */
import { printCurl } from '../../curl.ts'
import type { Snippet } from '../first-call/snippets.ts'

/** Prints a value of JSON as a literal of Python. */
function printPython(value: unknown, indent = ''): string {
  const inner = `${indent}    `
  if (value === null) return 'None'
  if (typeof value === 'boolean') return value ? 'True' : 'False'
  // A text of JSON is one of Python, except that Python knows no half characters beyond `\u`.
  if (typeof value !== 'object') return JSON.stringify(value)
  const entries = Array.isArray(value)
    ? value.map((one) => printPython(one, inner))
    : Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}: ${printPython(one, inner)}`)
  const [open, close] = Array.isArray(value) ? '[]' : '{}'
  if (entries.length === 0) return `${open}${close}`
  return `${open}\n${entries.map((entry) => `${inner}${entry},\n`).join('')}${indent}${close}`
}

const printPythonArguments = (body: object): string =>
  Object.entries(body)
    .map(([name, value]) => `    ${name}=${printPython(value, '    ')},\n`)
    .join('')

/** Prints a text as raw string of Go, in which a backtick cannot stand. */
const printGo = (text: string): string => `\`${text.replaceAll('`', '` + "`" + `')}\``

/** Prints a text in single quotes of Ruby. */
const printRuby = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`

/** Returns the call in each language. */
export function printCode(origin: string, path: string, body: object): readonly Snippet[] {
  const json = JSON.stringify(body, null, 2)
  const isStream = 'stream' in body && body.stream === true
  return [
    { id: 'curl', label: 'curl', code: printCurl(origin, path, body, { isPretty: true }) },
    {
      id: 'python',
      label: 'Python',
      code: `import os
from openai import OpenAI

client = OpenAI(base_url="${origin}/v1", api_key=os.environ["TOLLGATE_KEY"])
answer = client.chat.completions.create(
${printPythonArguments(body)})
${
  isStream
    ? `for chunk in answer:
    print(chunk.choices[0].delta.content or "" if chunk.choices else "", end="")`
    : 'print(answer.choices[0].message.content)'
}`,
    },
    {
      id: 'typescript',
      label: 'TypeScript',
      code: `import OpenAI from 'openai'

const client = new OpenAI({ baseURL: '${origin}/v1', apiKey: process.env.TOLLGATE_KEY })
const answer = await client.chat.completions.create(${json})
${
  isStream
    ? "for await (const chunk of answer) process.stdout.write(chunk.choices[0]?.delta?.content ?? '')"
    : 'console.log(answer.choices[0]?.message.content)'
}`,
    },
    {
      id: 'go',
      label: 'Go',
      code: `package main

import (
	"io"
	"net/http"
	"os"
	"strings"
)

func main() {
	body := ${printGo(json)}
	request, err := http.NewRequest("POST", "${origin}${path}", strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	request.Header.Set("Authorization", "Bearer "+os.Getenv("TOLLGATE_KEY"))
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		panic(err)
	}
	defer response.Body.Close()
	io.Copy(os.Stdout, response.Body)
}`,
    },
    {
      id: 'ruby',
      label: 'Ruby',
      code: `require 'net/http'

uri = URI('${origin}${path}')
request = Net::HTTP::Post.new(
  uri,
  'Authorization' => "Bearer #{ENV.fetch('TOLLGATE_KEY')}",
  'Content-Type' => 'application/json',
)
request.body = ${printRuby(json)}
Net::HTTP.start(uri.host, uri.port, use_ssl: uri.scheme == 'https') do |http|
  http.request(request) { |response| response.read_body { |part| print part } }
end`,
    },
  ]
}
