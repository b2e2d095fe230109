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
