/** The operations of the management API as endpoints of the reference. */
import { z } from 'zod'
import { OPERATIONS } from '../management/index.ts'
import { MANAGEMENT_PATH, type Operation } from '../management/operation.ts'
import type { Endpoint } from './endpoint.ts'

const IDEMPOTENCY = z.object({
  'idempotency-key': z.string().max(200).optional().describe('Makes the act happen once within a day.'),
})

const UPLOAD = {
  name: 'Upload',
  schema: z.object({ file: z.array(z.string().meta({ format: 'binary' })).describe('Any names.') }),
}

const allowed = ({ allows, scope }: Operation): string => {
  if (allows === 'everyone') return 'Needs no sign-in.'
  const who =
    allows === 'signed-in'
      ? 'Every signed-in user'
      : allows === 'operators'
        ? 'Operators'
        : `Roles: ${allows.join(', ')}`
  return `${who}. Scope of a management token: \`${scope}\`.`
}

const bodyName = ({ method, path }: Operation): string =>
  `${method} ${path}`
    .toLowerCase()
    .replace(/(?:^|[^a-z]+)([a-z])/g, (_, letter: string) => letter.toUpperCase())
    .replace(/[^A-Za-z]/g, '')

function endpointOf(operation: Operation): Endpoint {
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
    fileType,
    status,
  } = operation
  const inPath = [...path.matchAll(/\{([^}]+)\}/g)].map(([, name = '']) => name)
  const names = Object.keys(input.shape)
  const part = (wanted: readonly string[]) =>
    z.object(Object.fromEntries(wanted.map((name) => [name, input.shape[name]])))
  const rest = names.filter((name) => !inPath.includes(name))
  const isInQuery = method === 'GET' || method === 'DELETE' || isUpload
  return {
    method,
    path: `${MANAGEMENT_PATH}${path}`,
    tag: 'Management',
    summary,
    details: [details, allowed(operation), isSensitive && 'Needs a sign-in within the last ten minutes.']
      .filter(Boolean)
      .join(' '),
    key: allows === 'everyone' ? 'none' : 'management',
    ...(inPath.length > 0 && { pathParameters: part(inPath) }),
    ...(rest.length > 0 &&
      (isInQuery
        ? { query: part(rest) }
        : { body: { name: `${bodyName(operation)}Body`, schema: part(rest) } })),
    ...(isUpload && { form: UPLOAD }),
    ...(isIdempotent && { headers: IDEMPOTENCY }),
    ...(status !== undefined && { status }),
    answers:
      fileType === undefined
        ? [{ contentType: isStream ? 'text/event-stream' : 'application/json', body: answer }]
        : [{ contentType: fileType, says: 'A file.' }],
    failures: [
      'invalid_request',
      ...(inPath.length > 0 ? (['not_found', 'conflict'] as const) : []),
      ...(isSensitive ? (['reauthentication_required'] as const) : []),
      ...(isIdempotent ? (['invalid_idempotency_key', 'idempotency_key_reuse'] as const) : []),
      ...(allows === 'everyone' ? (['permission_denied'] as const) : []),
    ],
  }
}

export const managementEndpoints: readonly Endpoint[] = OPERATIONS.map(endpointOf)
