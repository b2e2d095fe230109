/**
 * Prints the settings of a client as a new file, for the console and for settings that `tollgate connect` does not write.
 * `src/cli/connect/settings-text.ts` edits existing files with packages that browsers lack; a test compares the two.
 */
import type { Field, SettingsFile } from '../../../schemas/clients.ts'

export interface SettingsValues {
  readonly base_url: string
  readonly key: string
  readonly model: string
}

type Tree = { [name: string]: string | Tree | Tree[] }

const fill = (text: string, values: SettingsValues): string =>
  text.replace(/\{(base_url|key|model)\}/g, (_, name: keyof SettingsValues) => values[name])

/** Returns the file with its fields filled in. */
export const fillFields = (file: SettingsFile, values: SettingsValues): SettingsFile => ({
  ...file,
  fields: file.fields.map((field) => ({
    ...field,
    path: field.path.map((segment) => fill(segment, values)),
    value: fill(field.value, values),
  })),
})

/** Prints a file with these fields and nothing else; settings without a file as a line each. */
export function printSettings({ format, fields }: SettingsFile): string {
  switch (format) {
    case 'json':
      return `${JSON.stringify(nestFields(fields), null, 2)}\n`
    case 'yaml':
      return printYaml(nestFields(fields), '')
    case 'toml':
      return printToml(fields)
    case 'env':
      return fields.map(({ path, value }) => `${path.join('.')}=${quoteVariable(value)}\n`).join('')
    case 'by hand':
      return fields.map(({ path, value }) => `${path.join('.')}: ${value}\n`).join('')
  }
}

/** Quotes the value of a variable where a shell would split it. */
export const quoteVariable = (value: string): string =>
  /^[\w.:/@+-]*$/.test(value) ? value : JSON.stringify(value)

/** Quotes a text of TOML. A flag is a word of its own. */
export const quoteToml = (value: string): string => (value === 'true' ? value : JSON.stringify(value))

const ITEM = 'name='

function nestFields(fields: readonly Field[]): Tree {
  const root: Tree = {}
  for (const { path, value } of fields) {
    let at = root
    for (const [index, segment] of path.slice(0, -1).entries()) {
      const next = path[index + 1]!
      if (segment.startsWith(ITEM)) continue
      at[segment] ??= next.startsWith(ITEM) ? [] : {}
      const inner = at[segment]
      at = Array.isArray(inner) ? findItem(inner, next.slice(ITEM.length)) : (inner as Tree)
    }
    at[path.at(-1)!] = value
  }
  return root
}

function findItem(list: Tree[], name: string): Tree {
  let item = list.find((one) => one.name === name)
  if (item === undefined) {
    item = { name }
    list.push(item)
  }
  return item
}

const PLAIN_YAML = /^[A-Za-z][\w ./-]*$|^[\w./-]+:\/\/[\w.:/-]+$|^\d+(?:\.\d+){2,}$/
const YAML_WORD = /^(?:true|false|null|yes|no|on|off)$/i

const quoteYaml = (text: string): string =>
  PLAIN_YAML.test(text) && !YAML_WORD.test(text) ? text : JSON.stringify(text)

function printYaml(tree: Tree, indent: string): string {
  return Object.entries(tree)
    .map(([name, value]) => {
      if (typeof value === 'string') return `${indent}${quoteYaml(name)}: ${quoteYaml(value)}\n`
      if (!Array.isArray(value)) return `${indent}${quoteYaml(name)}:\n${printYaml(value, `${indent}  `)}`
      const items = value.map((item) => `${indent}  - ${printYaml(item, `${indent}    `).trimStart()}`)
      return `${indent}${quoteYaml(name)}:\n${items.join('')}`
    })
    .join('')
}

function printToml(fields: readonly Field[]): string {
  const tables = new Map<string, string[]>()
  for (const { path, value } of fields) {
    const table = path.slice(0, -1).join('.')
    tables.set(table, [...(tables.get(table) ?? []), `${path.at(-1)} = ${quoteToml(value)}\n`])
  }
  return [...tables]
    .map(([table, lines]) => `${table === '' ? '' : `[${table}]\n`}${lines.join('')}`)
    .join('\n')
}
