/** The faults that the simulated provider commits on demand. */

/** Bytes count the response body without HTTP chunk framing; tokens count as in `Frame.tokens`. */
export type Fault =
  | {
      readonly kind:
        | 'refuse'
        | 'reset_head'
        | 'accept_then_cut'
        | 'garbage'
        | 'hang'
        | 'no_done'
        | 'no_stream_options'
    }
  | { readonly kind: 'reset' | 'truncate' | 'cut' | 'hang_after'; readonly afterBytes: number }
  | { readonly kind: 'stream_error'; readonly afterTokens: number }
  | { readonly kind: 'status'; readonly status: number }

/** A fault that strikes at a byte of the response body. */
type ByteFault = Extract<Fault, { afterBytes: number }>

export const FAULT_NAMES = [
  'reset',
  'accept_then_cut',
  'truncate',
  'cut',
  'hang',
  'status',
  'stream_error',
  'no_stream_options',
  'refuse',
  'no_done',
  'garbage',
] as const

type FaultName = (typeof FAULT_NAMES)[number]

const MAX_FAULT_BYTES = 1_000_000_000
const MAX_FAULT_TOKENS = 1_000_000
const LOWEST_STATUS = 200
const HIGHEST_STATUS = 599
/** HTTP allows them no body, so they cannot have an error (RFC 9110, 15.3.5, 15.3.6 and 15.4.5). */
const STATUSES_WITHOUT_BODY = [204, 205, 304]

const WITHOUT_WORK: readonly Fault['kind'][] = [
  'refuse',
  'reset_head',
  'garbage',
  'hang',
  'status',
  'stream_error',
]

/** Returns whether the fault strikes at a byte of the body. */
export function isByteFault(fault: Fault | null): fault is ByteFault {
  return fault !== null && 'afterBytes' in fault
}

/**
 * Whether a request with this fault is never worked on: what answers it stands in the place of the work. One whose
 * answer is cut off was worked on all the same.
 */
export function preventsWork(fault: Fault | undefined): boolean {
  return fault !== undefined && WITHOUT_WORK.includes(fault.kind)
}

/**
 * Reads `name` or `name:argument`, as in `reset:120`.
 *
 * @throws {RangeError} that says what is wrong with it, without naming the directive.
 */
export function parseFault(value: string): Fault {
  const [name, ...rest] = value.split(':')
  const argument = rest.length === 0 ? null : rest.join(':')
  if (!isFaultName(name)) throw new RangeError(`is one of ${FAULT_NAMES.join(', ')}, not "${name}"`)
  switch (name) {
    case 'reset':
      return argument === 'head' ? { kind: 'reset_head' } : afterBytes('reset', argument)
    case 'truncate':
    case 'cut':
      return afterBytes(name, argument)
    case 'hang':
      return argument === null ? { kind: 'hang' } : afterBytes('hang_after', argument)
    case 'status':
      return statusFault(argument)
    case 'stream_error':
      return { kind: name, afterTokens: whole(name, argument ?? '0', MAX_FAULT_TOKENS) }
    default:
      if (argument !== null) throw new RangeError(`${name} takes no argument`)
      return { kind: name }
  }
}

function isFaultName(name: string | undefined): name is FaultName {
  return (FAULT_NAMES as readonly (string | undefined)[]).includes(name)
}

function afterBytes(kind: ByteFault['kind'], argument: string | null): Fault {
  return { kind, afterBytes: whole(kind, argument, MAX_FAULT_BYTES) }
}

function statusFault(argument: string | null): Fault {
  const status = whole('status', argument, HIGHEST_STATUS)
  if (status < LOWEST_STATUS || STATUSES_WITHOUT_BODY.includes(status)) {
    throw new RangeError(`status ${status} cannot carry an error body`)
  }
  return { kind: 'status', status }
}

function whole(name: string, argument: string | null, max: number): number {
  if (argument === null || !/^\d{1,10}$/.test(argument) || Number(argument) > max) {
    throw new RangeError(`${name} takes a whole number up to ${max}, as in ${name}:120`)
  }
  return Number(argument)
}
