/** Reads what a caller sent against a schema; what does not fit is refused, and the field at fault is named. */

import type { z } from 'zod'
import { SimulatedFailure } from '../dialect.ts'

/** @throws {SimulatedFailure} 400 */
export function readAs<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  below = '',
): z.infer<Schema> {
  const read = schema.safeParse(value)
  if (read.success) return read.data
  const [issue] = read.error.issues
  const unknown = issue?.code === 'unrecognized_keys' ? issue.keys[0] : undefined
  const field = [...(below === '' ? [] : [below]), ...(issue?.path ?? []), ...(unknown ? [unknown] : [])]
  const param = field.map(String).join('.')
  const message = unknown === undefined ? `${param}: ${issue?.message}.` : `Unknown parameter: '${param}'.`
  throw new SimulatedFailure(400, 'invalid_request', message, { param })
}
