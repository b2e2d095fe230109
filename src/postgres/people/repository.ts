/** People, how they sign in, their sessions, and management tokens. */

import type {
  Invitation,
  ManagementToken,
  Passkey,
  Session,
  SignedIn,
  SignInMethods,
  User,
} from '../../../schemas/accounts/people.ts'
import type { KnownMasterKey } from '../accounts/master-key.ts'
import type { Listing } from '../listing.ts'
import { onStandby } from '../reading.ts'
import { onPool, type Pools } from '../repository.ts'
import {
  type Attempt,
  type AttemptSubjects,
  type InvitationMail,
  purgeAttempts,
  takeAttempt,
  takeBackAttempt,
  takeInvitationMail,
} from './attempts.ts'
import {
  createInvitation,
  findInvitation,
  listInvitations,
  type NewInvitation,
  redeemInvitation,
  revokeInvitation,
  showInvitation,
} from './invitations.ts'
import { deleteSavedView, listSavedViews, type SavedView, saveView } from './saved-views.ts'
import {
  createLink,
  createSession,
  endSessions,
  findSession,
  hasSignedIn,
  listSessions,
  type NewLink,
  type NewSession,
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
  type NewPasskey,
  type PasswordSignIn,
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
  type NewManagementToken,
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
  type NewUser,
  readUserEmails,
  setEmail,
  showUser,
  type UserChanges,
  type UserListing,
  updateUser,
} from './users.ts'

export interface Users {
  list(userListing?: UserListing): Promise<User[]>
  create(user: NewUser): Promise<User>
  show(id: string): Promise<User>
  readEmails(ids: readonly string[]): Promise<ReadonlyMap<string, string>>
  findByEmail(email: string): Promise<User | null>
  update(id: string, changes: UserChanges): Promise<User>
  setEmail(id: string, email: string): Promise<User>
  recordUnprovenEmail(userId: string): Promise<void>
}

export interface Sessions {
  create(session: NewSession): Promise<Session>
  find(tokenHash: Buffer): Promise<SignedIn | null>
  rotate(id: string, tokenHash: Buffer, which: { readonly isConfirmed: boolean }): Promise<Session>
  list(userId: string): Promise<Session[]>
  end(userId: string, which: { readonly only: string } | { readonly allBut: string | null }): Promise<number>
  purge(): Promise<void>
  createLink(link: NewLink): Promise<void>
  hasSignedIn(userId: string): Promise<boolean>
  signInByLink(linkHash: Buffer, session: Omit<NewSession, 'userId'>): Promise<Session>
}

export interface SignIn {
  findPassword(email: string): Promise<PasswordSignIn | null>
  setPassword(userId: string, passwordHash: string): Promise<void>
  listMethods(userId: string): Promise<SignInMethods>
  addPasskey(passkey: NewPasskey): Promise<Passkey>
  findPasskey(credentialId: string): Promise<Passkey | null>
  advancePasskey(passkey: Passkey, next: number): Promise<boolean>
  renamePasskey(userId: string, id: string, name: string): Promise<Passkey>
  removePasskey(userId: string, id: string): Promise<void>
  findIdentity(provider: string, subject: string): Promise<User | null>
  addIdentity(userId: string, provider: string, subject: string): Promise<void>
  removeIdentity(userId: string, provider: string): Promise<void>
  hasWay(userId: string): Promise<boolean>
  acceptTotpPeriod(userId: string, period: number): Promise<boolean>
  confirmTotp(userId: string): Promise<boolean>
  removeTotp(userId: string): Promise<void>
  setRecoveryCodes(userId: string, hashes: readonly Buffer[]): Promise<void>
  spendRecoveryCode(userId: string, hash: Buffer): Promise<boolean>
  enrolTotp(userId: string, secret: string): Promise<void>
  findTotpSecret(userId: string, which: { readonly isConfirmed: boolean }): Promise<string | null>
}

export interface Tickets {
  create(ticket: Ticket, data?: object, minutes?: number): Promise<void>
  findUser(ticket: Omit<Ticket, 'userId'>): Promise<string | null>
  void(userId: string, purpose?: Ticket['purpose']): Promise<void>
  take<Data>(ticket: Ticket): Promise<Data | null>
}

export interface Attempts {
  take(attemptSubjects: AttemptSubjects): Promise<Attempt>
  takeBack(ids: readonly bigint[]): Promise<void>
  takeInvitationMail(invitationMail: InvitationMail): Promise<Attempt>
  purge(): Promise<void>
}

export interface Invitations {
  create(invitation: NewInvitation): Promise<Invitation>
  list(accountId: string | null, listing?: Listing): Promise<Invitation[]>
  show(id: string): Promise<Invitation>
  revoke(id: string): Promise<Invitation>
  find(tokenHash: Buffer): Promise<Invitation>
  redeem(tokenHash: Buffer): Promise<Invitation>
}

export interface ManagementTokens {
  create(token: NewManagementToken): Promise<ManagementToken>
  find(tokenHash: Buffer): Promise<ManagementToken | null>
  list(accountId: string | null, listing?: Listing): Promise<ManagementToken[]>
  show(id: string): Promise<ManagementToken>
  revoke(id: string): Promise<ManagementToken>
}

export interface SavedViews {
  list(userId: string, page: string): Promise<SavedView[]>
  save(userId: string, savedView: SavedView): Promise<void>
  delete(userId: string, view: Omit<SavedView, 'query'>): Promise<void>
}

export interface PeopleRepositories {
  readonly users: Users
  readonly sessions: Sessions
  readonly signIn: SignIn
  readonly tickets: Tickets
  readonly attempts: Attempts
  readonly invitations: Invitations
  readonly managementTokens: ManagementTokens
  readonly savedViews: SavedViews
}

export function openPeople(pools: Pools, { material }: KnownMasterKey): PeopleRepositories {
  const { main, rounds } = pools
  return {
    users: {
      ...onStandby(pools, { list: listUsers }),
      ...onPool(main, {
        create: createUser,
        show: showUser,
        readEmails: readUserEmails,
        findByEmail: findUserByEmail,
        update: updateUser,
        setEmail,
        recordUnprovenEmail,
      }),
    },
    sessions: {
      ...onPool(main, {
        create: createSession,
        find: findSession,
        rotate: rotateSession,
        list: listSessions,
        end: endSessions,
        createLink,
        hasSignedIn,
        signInByLink,
      }),
      ...onPool(rounds, { purge: purgeSessions }),
    },
    signIn: {
      ...onPool(main, {
        findPassword: findPasswordSignIn,
        setPassword,
        listMethods: listSignInMethods,
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
      }),
      enrolTotp: (userId, secret) => enrolTotp(main, material, userId, secret),
      findTotpSecret: (userId, which) => findTotpSecret(main, material, userId, which),
    },
    tickets: {
      ...onPool(main, { create: createTicket, findUser: findTicketUser, void: voidTickets }),
      take: (ticket) => takeTicket(main, ticket),
    },
    attempts: {
      ...onPool(main, { take: takeAttempt, takeBack: takeBackAttempt, takeInvitationMail }),
      ...onPool(rounds, { purge: purgeAttempts }),
    },
    invitations: onPool(main, {
      create: createInvitation,
      list: listInvitations,
      show: showInvitation,
      revoke: revokeInvitation,
      find: findInvitation,
      redeem: redeemInvitation,
    }),
    managementTokens: onPool(main, {
      create: createManagementToken,
      find: findManagementToken,
      list: listManagementTokens,
      show: showManagementToken,
      revoke: revokeManagementToken,
    }),
    savedViews: onPool(main, { list: listSavedViews, save: saveView, delete: deleteSavedView }),
  }
}
