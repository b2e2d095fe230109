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
import { purgeAttempts, takeAttempt, takeBackAttempt, takeInvitationMail } from './attempts.ts'
import {
  createInvitation,
  findInvitation,
  listInvitations,
  redeemInvitation,
  revokeInvitation,
  showInvitation,
} from './invitations.ts'
import { deleteSavedView, listSavedViews, saveView } from './saved-views.ts'
import {
  createLink,
  createSession,
  endSessions,
  findSession,
  hasSignedIn,
  listSessions,
  purgeSessions,
  rotateSession,
  signInByLink,
} from './sessions.ts'
import {
  addIdentity,
  addPasskey,
  advancePasskey,
  findIdentity,
  findPasskey,
  findPasswordSignIn,
  hasWay,
  listSignInMethods,
  removeIdentity,
  removePasskey,
  renamePasskey,
  setPassword,
} from './sign-in-methods.ts'
import { createTicket, findTicketUser, type Ticket, takeTicket, voidTickets } from './tickets.ts'
import {
  createManagementToken,
  findManagementToken,
  listManagementTokens,
  revokeManagementToken,
  showManagementToken,
} from './tokens.ts'
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
  ...onPool(main, {
    createUser,
    showUser,
    userEmails,
    findUserByEmail,
    updateUser,
    setEmail,
    recordUnprovenEmail,
    createSession,
    rotateSession,
    findSession,
    hasSignedIn,
    listSessions,
    endSessions,
    purgeSessions,
    createLink,
    signInByLink,
    createManagementToken,
    findManagementToken,
    listManagementTokens,
    showManagementToken,
    revokeManagementToken,
    purgeManagementAnswers,
    listSavedViews,
    saveView,
    deleteSavedView,
  }),
  ...onPool(main, {
    findPasswordSignIn,
    setPassword,
    listSignInMethods,
    addPasskey,
    findPasskey,
    advancePasskey,
    renamePasskey,
    removePasskey,
    findIdentity,
    addIdentity,
    removeIdentity,
    hasWay,
    acceptTotpPeriod,
    confirmTotp,
    removeTotp,
    setRecoveryCodes,
    spendRecoveryCode,
    createInvitation,
    listInvitations,
    showInvitation,
    revokeInvitation,
    findInvitation,
    redeemInvitation,
    createTicket,
    findTicketUser,
    voidTickets,
    takeAttempt,
    takeInvitationMail,
    takeBackAttempt,
    purgeAttempts,
  }),
  takeTicket: <Data>(ticket: Ticket) => takeTicket<Data>(main, ticket),
  enrolTotp: (userId: string, secret: string) => enrolTotp(main, material, userId, secret),
  findTotpSecret: (userId: string, which: { readonly isConfirmed: boolean }) =>
    findTotpSecret(main, material, userId, which),
  findManagementAnswer: (request: KeyedRequest) => findManagementAnswer(main, material, request),
  storeManagementAnswer: (request: KeyedRequest, answer: string) =>
    storeManagementAnswer(main, material, request, answer),
})
