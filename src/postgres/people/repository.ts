/** People, their sessions, and management tokens. */
import type { KnownMasterKey } from '../accounts/master-key.ts'
import { onStandby } from '../reading.ts'
import { onPool, type Pools } from '../repository.ts'
import {
  findManagementAnswer,
  type KeyedRequest,
  purgeManagementAnswers,
  storeManagementAnswer,
} from './answers.ts'
import * as attempts from './attempts.ts'
import * as invitations from './invitations.ts'
import * as savedViews from './saved-views.ts'
import * as sessions from './sessions.ts'
import * as signInMethods from './sign-in-methods.ts'
import { createTicket, findTicketUser, type Ticket, takeTicket, voidTickets } from './tickets.ts'
import * as tokens from './tokens.ts'
import {
  acceptTotpPeriod,
  confirmTotp,
  enrolTotp,
  findTotpSecret,
  removeTotp,
  setRecoveryCodes,
  spendRecoveryCode,
} from './totp.ts'
import { recordUnprovenEmail } from './unproven-emails.ts'
import {
  createUser,
  findUserByEmail,
  listUsers,
  setEmail,
  showUser,
  updateUser,
  userEmails,
} from './users.ts'

export type People = ReturnType<typeof openPeople>

export const openPeople = ({ main, ...pools }: Pools, { material }: KnownMasterKey) => ({
  ...onStandby({ main, ...pools }, { listUsers }),
  ...onPool(main, { createUser, showUser, userEmails, findUserByEmail, updateUser, setEmail }),
  ...onPool(main, { ...attempts, ...invitations, ...savedViews, ...sessions, ...signInMethods, ...tokens }),
  ...onPool(main, { acceptTotpPeriod, confirmTotp, removeTotp, setRecoveryCodes, spendRecoveryCode }),
  ...onPool(main, { recordUnprovenEmail, purgeManagementAnswers, createTicket, findTicketUser, voidTickets }),
  takeTicket: <Data>(ticket: Ticket) => takeTicket<Data>(main, ticket),
  enrolTotp: (userId: string, secret: string) => enrolTotp(main, material, userId, secret),
  findTotpSecret: (userId: string, which: { readonly isConfirmed: boolean }) =>
    findTotpSecret(main, material, userId, which),
  findManagementAnswer: (request: KeyedRequest) => findManagementAnswer(main, material, request),
  storeManagementAnswer: (request: KeyedRequest, answer: string) =>
    storeManagementAnswer(main, material, request, answer),
})
