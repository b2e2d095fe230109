/** Operations of the configuration file: of the gateway that answers. */
import { z } from 'zod'
import { operation } from './operation.ts'

const MAX_TEXT_CHARS = 900_000

const problem = z.object({
  line: z.int(),
  column: z.int(),
  field: z.string(),
  message: z.string(),
})

const entries = z.object({
  added: z.array(z.string()),
  removed: z.array(z.string()),
  changed: z.array(
    z.object({
      id: z.string(),
      fields: z.array(
        z.object({
          name: z.string(),
          before: z.string().nullable().describe('As JSON. null: absent, or a secret.'),
          after: z.string().nullable(),
        }),
      ),
    }),
  ),
})

const difference = z.object({
  models: entries,
  channels: entries,
  sections: z.array(z.string()).describe('Other parts of the file that change.'),
})
export type Difference = z.infer<typeof difference>

const text = z
  .string()
  .max(MAX_TEXT_CHARS)
  .describe(
    'YAML. `********` stands for the secret that the file has there; in a list, `********2` for the second entry of the file.',
  )

const ofOperators = { scope: 'admin', allows: 'operators' } as const

export const showConfiguration = operation('showConfiguration', {
  ...ofOperators,
  summary: 'Show the configuration file, without its secrets.',
  input: z.object({}),
  answer: {
    name: 'Configuration',
    schema: z.object({
      path: z.string(),
      text: z.string(),
      digest: z.string(),
      is_writable: z.boolean().describe('Whether the gateway may replace the file.'),
      is_refused: z.boolean().describe('The file has problems: the content before it stays in force.'),
      host: z.string().describe('The machine whose file this is.'),
      other_hosts: z
        .array(z.string())
        .describe('Other machines that run the service, each with its copy of the file.'),
    }),
  },
})

export const checkConfiguration = operation('checkConfiguration', {
  ...ofOperators,
  summary: 'Check a proposed configuration, and show how it differs from the file.',
  input: z.object({ text }),
  answer: {
    name: 'CheckedConfiguration',
    schema: z.object({
      ok: z.boolean(),
      problems: z.array(problem),
      warnings: z.array(problem).describe('Probable mistakes that do not prevent the use.'),
      difference,
      lines: z
        .array(
          z.object({
            kind: z.enum(['same', 'removed', 'added']),
            line: z.int().describe('In the file for a removed line, else in the text.'),
            text: z.string(),
          }),
        )
        .describe('The lines that change, each with two lines around it. Secrets are masked.'),
    }),
  },
})

const entryList = z.enum(['models', 'channels'])
const entry = z.record(z.string(), z.unknown())
const edit = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('change'),
    list: entryList,
    id: z.string(),
    changes: z.array(
      z.strictObject({
        path: z
          .array(z.string())
          .min(1)
          .describe('Names of fields, from the entry on: `["pricing", "input"]`.'),
        value: z.unknown().describe('null removes the field.'),
      }),
    ),
  }),
  z.strictObject({ kind: z.literal('add'), list: entryList, entry }),
  z.strictObject({ kind: z.literal('remove'), list: entryList, id: z.string() }),
])

export const editConfiguration = operation('editConfiguration', {
  ...ofOperators,
  summary: 'Change models and channels in a proposed configuration, and read them. Nothing is applied.',
  details: 'Rewrites only what changes: comments, order and references to variables stay.',
  input: z.object({
    text,
    edits: z.array(edit).max(100).default([]),
    find: z
      .strictObject({ list: entryList, id: z.string(), path: z.array(z.string()) })
      .optional()
      .describe('A field whose place in the text is wanted.'),
  }),
  answer: {
    name: 'EditedConfiguration',
    schema: z.object({
      text: z.string(),
      models: z.array(entry),
      channels: z.array(entry),
      found: z
        .object({ line: z.int(), column: z.int() })
        .nullable()
        .describe('The place of the field, or of the nearest one around it. null: none was wanted.'),
    }),
  },
})

export const applyConfiguration = operation('applyConfiguration', {
  ...ofOperators,
  summary: 'Replace the configuration file.',
  details:
    'Every process of this host takes it up within a second; each other host has another file. 409 when the file has changed ' +
    'since it was read, or cannot be written here: it is then changed where the installation is deployed from.',
  input: z.object({ text, digest: z.string().describe('Of the content that was edited.') }),
  answer: { name: 'AppliedConfiguration', schema: z.object({ digest: z.string(), difference }) },
  isSensitive: true,
})
