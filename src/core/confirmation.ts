/** How strongly an operation is confirmed. The console and the command line ask for the same, each in its own words. */
import type { OperationName } from '../../schemas/routes.ts'
import { normalizeText } from './normalize-text.ts'

/**
 * What a person types before an operation destroys something, refuses every call of an account or a model, or moves much money: this
 * field of its input, or of what it is about. Other operations ask for a yes at most.
 */
export const TYPED_TO_CONFIRM = {
  abandonJournal: 'id',
  adjust: 'amount',
  createAccount: 'credit',
  deleteAgent: 'name',
  deleteBase: 'name',
  deleteBudget: 'name',
  deleteWebhook: 'host',
  disableUser: 'email',
  drainChannel: 'id',
  endFormerSecret: 'name',
  pauseChannel: 'id',
  refund: 'amount',
  refundPayment: 'amount',
  removeMember: 'name',
  removePasskey: 'name',
  revokeInstallationToken: 'name',
  revokeKey: 'name',
  revokeToken: 'name',
  topUp: 'amount',
  updateAccount: 'name',
} as const satisfies { readonly [Name in OperationName]?: string }

type Typed = typeof TYPED_TO_CONFIRM

/** Returns what is typed to confirm the operation. */
export const readTyped = <Name extends keyof Typed>(
  operation: Name,
  subject: { readonly [Field in Typed[Name]]: string },
): string => subject[TYPED_TO_CONFIRM[operation] as Typed[Name]]

/** Several spaces in a row are shown as one, and the user types one. */
const normalize = (text: string): string => normalizeText(text, 'NFC').replace(/\s+/g, ' ').trim()

export const isSameTyped = (typed: string, wanted: string): boolean => normalize(typed) === normalize(wanted)
