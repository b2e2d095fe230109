/** Fields that requests of several media endpoints have in common. See docs/api-rules.md, "Links from clients". */
import { z } from 'zod'
import { readWebLink } from '../web-link.ts'

/** The longest URL that a client may give. */
export const CALLER_LINK_MAX_CHARS = 2048

const isWebLink = (text: string): boolean => {
  const read = /\s/.test(text) ? 'invalid' : readWebLink(text)
  return read !== 'invalid' && read !== 'not_web'
}

/** Returns the link as every reader of URLs writes it; any other text unchanged. */
export function normalizeLink(text: string): string {
  const read = readWebLink(text)
  return read instanceof URL ? read.href : text
}

/** A public link that the caller gives. */
export const callerLink = z
  .string()
  .max(CALLER_LINK_MAX_CHARS, `it must be at most ${CALLER_LINK_MAX_CHARS} characters`)
  .refine(isWebLink, 'it must be an http or https link')
  .refine((text) => readWebLink(text) !== 'credentials', 'it must be a link without a user name and password')
  .refine(
    (text) => readWebLink(text) !== 'ambiguous',
    'it must be a link without backslashes and control characters, whose host reads in one way',
  )
  .overwrite(normalizeLink)
  .meta({ format: 'uri', pattern: '^[hH][tT][tT][pP][sS]?://[^/]' })
  .describe(`A public direct http or https link, at most ${CALLER_LINK_MAX_CHARS} characters.`)

/** A field of every request with an end that is worth a notice. */
export const callbackField = {
  callback_url: callerLink
    .nullish()
    .describe(
      'A public http or https address to which the end of the task is posted, as a signed `task.succeeded` or ' +
        '`task.failed`. The answer does not change.',
    ),
}

/** Fields of every request that makes media. */
export const mediaFields = {
  ...callbackField,
  stream: z
    .literal(false, { error: 'media are not streamed; leave it out, the answer comes whole' })
    .nullish()
    .describe('Media are not streamed.'),
}

/** Counts Unicode characters, not code units. */
export const countCharacters = (text: string): number => [...text].length

/** Returns true for a text that is neither absent nor blank. */
export const isGiven = (text: string | null | undefined): text is string =>
  typeof text === 'string' && text.trim() !== ''

/** Returns the schema of a text of 1 (or `least`) to `most` Unicode characters. */
export const boundText = (most: number, least = 1) =>
  z
    .string()
    .refine(
      (text) => {
        const count = countCharacters(text)
        return count >= least && count <= most
      },
      least === 0 ? `it must be at most ${most} characters` : `it must be ${least} to ${most} characters`,
    )
    .meta({ minLength: least, maxLength: most })
    .describe(`${least === 0 ? 'At most' : `${least} to`} ${most} characters.`)

export const modelId = z.string().min(1).describe('An id or an alias of the catalog.')

/** The parts of a request that are common to all models; the rest depends on the kind of the model. */
export const modelNamed = z.looseObject({
  model: modelId,
  ...mediaFields,
})
