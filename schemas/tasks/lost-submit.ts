/** A submit whose outcome is unknown: its customer has an error and the money, and operators have this record. */
import { z } from 'zod'

const LOST_SUBMIT_STATES = [
  // It is not known whether the provider has it.
  'open',
  // The provider has it.
  'found',
  // The provider certainly has not taken it on.
  'absent',
  // The provider has cancelled it.
  'cancelled',
  // The provider came to an end without a result.
  'failed',
  // The provider has made what was ordered, and no customer gets it.
  'made',
  // An operator has dealt with it.
  'closed',
] as const
export const lostSubmitState = z.enum(LOST_SUBMIT_STATES)
export type LostSubmitState = z.infer<typeof lostSubmitState>

/** Those that something may still be done about. */
export const OPEN_LOST_STATES = ['open', 'found'] as const satisfies readonly LostSubmitState[]
export type LostSubmitEnd = Exclude<LostSubmitState, (typeof OPEN_LOST_STATES)[number] | 'closed'>
