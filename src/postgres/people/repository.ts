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
import * as attempts from './attempts.ts'
import * as invitations from './invitations.ts'
import { deleteSavedView, listSavedViews, type SavedView, saveView } from './saved-views.ts'
import * as sessions from './sessions.ts'
import * as signInMethods from './sign-in-methods.ts'
import { createTicket, findTicketUser, type Ticket, takeTicket, voidTickets } from './tickets.ts'
import * as tokens from './tokens.ts'
import * as totp from './totp.ts'
import { recordUnprovenEmail } from './unproven-emails.ts'
import * as users from './users.ts'

export interface Users {
  list(userListing?: users.UserListing): Promise<User[]>
  create(user: users.NewUser): Promise<User>
  show(id: string): Promise<User>
  readEmails(ids: readonly string[]): Promise<ReadonlyMap<string, string>>
  findByEmail(email: string): Promise<User | null>
  update(id: string, changes: users.UserChanges): Promise<User>
  setEmail(id: string, email: string): Promise<User>
  recordUnprovenEmail(userId: string): Promise<void>
}

export interface Sessions {
  create(session: sessions.NewSession): Promise<Session>
  find(tokenHash: Buffer): Promise<SignedIn | null>
  rotate(id: string, tokenHash: Buffer, which: { readonly isConfirmed: boolean }): Promise<Session>
  list(userId: string): Promise<Session[]>
  end(userId: string, which: { readonly only: string } | { readonly allBut: string | null }): Promise<number>
  purge(): Promise<void>
  createLink(link: sessions.NewLink): Promise<void>
  hasSignedIn(userId: string): Promise<boolean>
  signInByLink(linkHash: Buffer, session: Omit<sessions.NewSession, 'userId'>): Promise<Session>
}

export interface SignIn {
  findPassword(email: string): Promise<signInMethods.PasswordSignIn | null>
  setPassword(userId: string, passwordHash: string): Promise<void>
  listMethods(userId: string): Promise<SignInMethods>
  addPasskey(passkey: signInMethods.NewPasskey): Promise<Passkey>
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
  take(attemptSubjects: attempts.AttemptSubjects): Promise<attempts.Attempt>
  takeBack(ids: readonly bigint[]): Promise<void>
  takeInvitationMail(invitationMail: attempts.InvitationMail): Promise<attempts.Attempt>
  purge(): Promise<void>
}

export interface Invitations {
  create(invitation: invitations.NewInvitation): Promise<Invitation>
  list(accountId: string | null, listing?: Listing): Promise<Invitation[]>
  show(id: string): Promise<Invitation>
  revoke(id: string): Promise<Invitation>
  find(tokenHash: Buffer): Promise<Invitation>
  redeem(tokenHash: Buffer): Promise<Invitation>
}

export interface ManagementTokens {
  create(token: tokens.NewManagementToken): Promise<ManagementToken>
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
  const { main } = pools
  return {
    users: {
      ...onStandby(pools, { list: users.listUsers }),
      ...onPool(main, {
        create: users.createUser,
        show: users.showUser,
        readEmails: users.readUserEmails,
        findByEmail: users.findUserByEmail,
        update: users.updateUser,
        setEmail: users.setEmail,
        recordUnprovenEmail,
      }),
    },
    sessions: {
      ...onPool(main, {
        create: sessions.createSession,
        find: sessions.findSession,
        rotate: sessions.rotateSession,
        list: sessions.listSessions,
        end: sessions.endSessions,
        createLink: sessions.createLink,
        hasSignedIn: sessions.hasSignedIn,
        signInByLink: sessions.signInByLink,
        purge: sessions.purgeSessions,
      }),
    },
    signIn: {
      ...onPool(main, {
        findPassword: signInMethods.findPasswordSignIn,
        setPassword: signInMethods.setPassword,
        listMethods: signInMethods.listSignInMethods,
        addPasskey: signInMethods.addPasskey,
        findPasskey: signInMethods.findPasskey,
        advancePasskey: signInMethods.advancePasskey,
        renamePasskey: signInMethods.renamePasskey,
        removePasskey: signInMethods.removePasskey,
        findIdentity: signInMethods.findIdentity,
        addIdentity: signInMethods.addIdentity,
        removeIdentity: signInMethods.removeIdentity,
        hasWay: signInMethods.hasWay,
        acceptTotpPeriod: totp.acceptTotpPeriod,
        confirmTotp: totp.confirmTotp,
        removeTotp: totp.removeTotp,
        setRecoveryCodes: totp.setRecoveryCodes,
        spendRecoveryCode: totp.spendRecoveryCode,
      }),
      enrolTotp: (userId, secret) => totp.enrolTotp(main, material, userId, secret),
      findTotpSecret: (userId, which) => totp.findTotpSecret(main, material, userId, which),
    },
    tickets: {
      ...onPool(main, { create: createTicket, findUser: findTicketUser, void: voidTickets }),
      take: (ticket) => takeTicket(main, ticket),
    },
    attempts: {
      ...onPool(main, {
        take: attempts.takeAttempt,
        takeBack: attempts.takeBackAttempt,
        takeInvitationMail: attempts.takeInvitationMail,
        purge: attempts.purgeAttempts,
      }),
    },
    invitations: onPool(main, {
      create: invitations.createInvitation,
      list: invitations.listInvitations,
      show: invitations.showInvitation,
      revoke: invitations.revokeInvitation,
      find: invitations.findInvitation,
      redeem: invitations.redeemInvitation,
    }),
    managementTokens: onPool(main, {
      create: tokens.createManagementToken,
      find: tokens.findManagementToken,
      list: tokens.listManagementTokens,
      show: tokens.showManagementToken,
      revoke: tokens.revokeManagementToken,
    }),
    savedViews: onPool(main, { list: listSavedViews, save: saveView, delete: deleteSavedView }),
  }
}
