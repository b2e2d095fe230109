/** What operations say of themselves as commands names fields that there are. */
import t from 'tap'
import type { z } from 'zod'
import { OPERATIONS } from '../../../schemas/management/index.ts'
import type { CommandForm, Operation } from '../../../schemas/management/operation.ts'
import { openDomain } from '../../../src/cli/operations/domains.ts'
import { EXTRAS } from '../../../src/cli/operations/extras.ts'
import { commandTree, noEngines } from './support.ts'

const words = (text = ''): string[] => text.split(' ').filter((word) => word !== '')
const fieldsOf = (schema: unknown): string[] => Object.keys((schema as z.ZodObject).shape)

/** Fields of the answer that may be columns: `wallet.held` too. */
function columnsOf({ answer }: Operation): string[] {
  const { shape } = answer.schema as z.ZodObject
  const entry = 'next_cursor' in shape ? (shape.data as z.ZodArray).element : answer.schema
  return Object.entries((entry as z.ZodObject).shape).flatMap(([name, field]) =>
    'shape' in field ? [name, ...fieldsOf(field).map((inner) => `${name}.${inner}`)] : [name],
  )
}

const forms = OPERATIONS.flatMap((operation) =>
  (operation.commands ?? []).map((form): [Operation, CommandForm] => [operation, form]),
)

t.test('every field that a command names is one of its operation', async (t) => {
  for (const [operation, form] of forms) {
    const flagged = Object.values(form.flags ?? {}).flatMap(([, values]) => Object.keys(values))
    const named = [...words(form.args), ...words(form.options), ...words(form.required), ...flagged]
    const fields = fieldsOf(operation.input)
    for (const name of [...named, ...Object.keys(form.values ?? {})])
      t.ok(fields.includes(name), `${form.words}: ${name}`)
    // Agents show the fields of their file among their own.
    if (EXTRAS[form.words]?.shape !== undefined) continue
    const columns = columnsOf(operation)
    for (const name of words(form.columns)) t.ok(columns.includes(name), `${form.words}: column ${name}`)
  }
})

t.test('every command of an operation has what it needs', async (t) => {
  const output = { answer() {}, error() {}, isColoured: false }
  for (const [operation, { words }] of forms) {
    const context = { wiring: noEngines, output, isNegativeAnswer() {} }
    // Found, it goes on to the engines, of which there are none here.
    await t.rejects(async () => openDomain(operation, context, async () => {}), /no such command/, words)
  }
})

t.test('what goes beyond an operation belongs to a command', async (t) => {
  const names = commandTree().map((command) => command.words.join(' '))
  for (const name of Object.keys(EXTRAS)) t.ok(names.includes(name), name)
})
