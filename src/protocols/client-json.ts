/** A client's JSON against its contract: what is wrong is said in one sentence that names the field. */
import type { ZodType } from 'zod'
import { Failure } from '../../schemas/failure.ts'

/** @throws Failure `invalid_request` */
export function parseJsonBody(body: Buffer): unknown {
  if (body.length === 0)
    throw new Failure('invalid_request', 'The request body is empty; a JSON object is expected.')
  try {
    return JSON.parse(body.toString('utf8'))
  } catch (error) {
    throw new Failure('invalid_request', `The request body is not valid JSON: ${(error as Error).message}`)
  }
}

export interface Issue {
  /** As zod names the kind of complaint. */
  readonly code?: string | undefined
  readonly path: readonly PropertyKey[]
  readonly message: string
  /** The complaints of each branch, where none of several fits. */
  readonly errors?: readonly (readonly Issue[])[] | undefined
}

/** Of another type than the branch is for. */
const isStrange = ({ code }: Issue): boolean => code === 'invalid_type'

/** Of several branches the one that got furthest is the one that was meant; as far, the one whose type it has. */
function deepest(issue: Issue): Issue {
  let found = issue
  for (const branch of issue.errors ?? []) {
    if (branch[0] === undefined) continue
    const inner = deepest({ ...branch[0], path: [...issue.path, ...branch[0].path] })
    const further = inner.path.length - found.path.length
    if (found === issue || further > 0 || (further === 0 && isStrange(found) && !isStrange(inner)))
      found = inner
  }
  return found
}

/** Such as `messages[2].content[0].type`; empty for the whole. */
export const pathText = (path: readonly PropertyKey[]): string =>
  path
    .map((step) => (typeof step === 'number' ? `[${step}]` : `.${String(step)}`))
    .join('')
    .replace(/^\./, '')

/** A refusal that names the field. */
export function invalidField(path: string, why: string): Failure {
  const what = path === '' ? 'The request body' : `Field '${path}'`
  return new Failure('invalid_request', `${what} is not valid: ${why}`)
}

/** @throws Failure `invalid_request` with the first complaint of `schema` */
export function readClientJson<T>(schema: ZodType<T>, value: unknown): T {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const [first] = parsed.error.issues
  if (first === undefined) throw invalidField('', 'it does not fit the contract')
  const issue = deepest(first as Issue)
  throw invalidField(pathText(issue.path), issue.message)
}
