/** The operations of the management API as endpoints of the reference. */
import { z } from 'zod'
import type { FailureCode } from '../failure.ts'
import { idempotencyHeader } from '../idempotency-key.ts'
import { OPERATIONS } from '../management/index.ts'
import type { Operation } from '../management/operation.ts'
import { MANAGEMENT_PATH } from '../routes.ts'
import type { Endpoint } from './endpoint.ts'

const IDEMPOTENCY = z.object(idempotencyHeader('within 7 days the operation runs once for each key.'))

const CONTINUES = z.object({
  'last-event-id': z.string().optional().describe('The stream goes on: what it begins with is left out.'),
})

const UPLOAD = {
  name: 'Upload',
  schema: z.object({ file: z.array(z.string().meta({ format: 'binary' })).describe('Any names.') }),
}

/** Inputs that name what may not be there. */
const NAMES_SOMETHING = /_id$/
const NOT_FOUND: readonly FailureCode[] = ['not_found']
const CONFLICT: readonly FailureCode[] = ['conflict']
const REAUTHENTICATION: readonly FailureCode[] = ['reauthentication_required']
const REPEATED: readonly FailureCode[] = ['invalid_idempotency_key', 'idempotency_key_reuse']

const printAllowed = ({ allows, scope }: Operation): string => {
  if (allows === 'everyone') return 'Needs no sign-in.'
  const who =
    allows === 'signed-in'
      ? 'Every signed-in user'
      : allows === 'operators'
        ? 'Operators'
        : `Roles: ${allows.join(', ')}`
  return `${who}. Scope of a management token: \`${scope}\`.`
}

const nameBody = ({ method, path }: Operation): string =>
  `${method} ${path}`
    .toLowerCase()
    .replace(/(?:^|[^a-z]+)([a-z])/g, (_, letter: string) => letter.toUpperCase())
    .replace(/[^A-Za-z]/g, '')

function toEndpoint(operation: Operation): Endpoint {
  const {
    method,
    path,
    summary,
    details,
    input,
    answer,
    allows,
    isIdempotent,
    isSensitive,
    isStream,
    isUpload,
    isPage,
    status,
    failures = [],
  } = operation
  const inPath = [...path.matchAll(/\{([^}]+)\}/g)].map(([, name = '']) => name)
  const names = Object.keys(input.shape)
  const part = (wanted: readonly string[]) =>
    z.strictObject(Object.fromEntries(wanted.map((name) => [name, input.shape[name]])))
  const rest = names.filter((name) => !inPath.includes(name))
  const isInQuery = method === 'GET' || method === 'DELETE' || isUpload
  return {
    method,
    path: `${MANAGEMENT_PATH}${path}`,
    tag: 'Management',
    summary,
    details: [details, printAllowed(operation), isSensitive && 'Needs a sign-in within the last ten minutes.']
      .filter(Boolean)
      .join(' '),
    key: allows === 'everyone' ? 'none' : 'management',
    ...(inPath.length > 0 && { pathParameters: part(inPath) }),
    ...(rest.length > 0 &&
      (isInQuery
        ? { query: part(rest) }
        : { body: { name: `${nameBody(operation)}Body`, schema: part(rest) } })),
    ...(isUpload && { form: UPLOAD }),
    ...(isIdempotent && { headers: IDEMPOTENCY }),
    ...(isStream && { headers: CONTINUES }),
    ...(status !== undefined && { status }),
    answers:
      isPage === undefined
        ? [{ contentType: isStream ? 'text/event-stream' : 'application/json', body: answer }]
        : [{ contentType: 'text/html', says: 'A page.' }],
    failures: [
      'invalid_request',
      ...(names.some((name) => inPath.includes(name) || NAMES_SOMETHING.test(name)) ? NOT_FOUND : []),
      ...(method === 'GET' && inPath.length === 0 ? [] : CONFLICT),
      ...(isSensitive ? REAUTHENTICATION : []),
      ...(isIdempotent ? REPEATED : []),
      ...failures,
    ],
  }
}

export const managementEndpoints: readonly Endpoint[] = OPERATIONS.map(toEndpoint)
