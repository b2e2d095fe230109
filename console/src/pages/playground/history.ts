/** The last conversations of a user with the models of an account, kept in the browser. */
import { KEPT } from '../../drafts.ts'
import type { Turn } from './request.ts'

const PREFIX = `${KEPT}playground `
const MAX_CONVERSATIONS = 20

export interface Conversation {
  readonly id: string
  /** ISO 8601. */
  readonly at: string
  readonly model: string
  readonly turns: readonly Turn[]
}

/** Returns the conversations, the newest first. */
export function listConversations(owner: string): readonly Conversation[] {
  const text = localStorage.getItem(PREFIX + owner)
  return text === null ? [] : JSON.parse(text)
}

/** Keeps a conversation in place of its former state. Its pictures are too large to be kept. */
export function keepConversation(owner: string, conversation: Conversation): void {
  const turns = conversation.turns.map(({ pictures: _, ...turn }) => turn)
  const others = listConversations(owner).filter(({ id }) => id !== conversation.id)
  let kept = [{ ...conversation, turns }, ...others].slice(0, MAX_CONVERSATIONS)
  for (; kept.length > 0; kept = kept.slice(0, -1))
    try {
      localStorage.setItem(PREFIX + owner, JSON.stringify(kept))
      return
    } catch {
      // The browser has no room for so many.
    }
}

export function forgetConversation(owner: string, id: string): void {
  const others = listConversations(owner).filter((one) => one.id !== id)
  localStorage.setItem(PREFIX + owner, JSON.stringify(others))
}
