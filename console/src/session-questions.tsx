/** Asks the user what a request needs before it continues: their identity, or a new session. */
import { useQueryClient } from '@tanstack/react-query'
import { lazy, Suspense, useEffect, useRef, useState } from 'react'
import { onQuestion, type Question, setCsrfToken } from './api/client.ts'
import { announceSession, onAnnouncedSession, type Session, sessionQuery } from './api/session.ts'
import { whenIdle } from './when-idle.ts'

const load = () => import('./session-dialog.tsx')
const SessionDialog = lazy(async () => ({ default: (await load()).SessionDialog }))

/** Stands above every page. Requests wait while the dialog is open, and are sent again once the user has answered. */
export function SessionQuestions() {
  const queries = useQueryClient()
  const [question, setQuestion] = useState<Question | null>(null)
  const waiting = useRef<((isDone: boolean) => void)[]>([])
  useEffect(() => {
    onQuestion(
      (asked) =>
        new Promise((resolve) => {
          waiting.current.push(resolve)
          // A new session is a confirmation too.
          setQuestion((now) => (now === 'sign-in' ? now : asked))
        }),
    )
    // Loaded before it is needed, but after the page: a session may end while the service is down.
    const stop = whenIdle(() => void load().catch(() => undefined))
    return () => {
      stop()
      onQuestion(async () => false)
    }
  }, [])
  useEffect(() => onAnnouncedSession(() => void queries.refetchQueries(sessionQuery)), [queries])
  const answer = (session: Session | null) => {
    if (session !== null) {
      setCsrfToken(session.csrf_token)
      queries.setQueryData(sessionQuery.queryKey, session)
      announceSession()
    }
    setQuestion(null)
    for (const resolve of waiting.current.splice(0)) resolve(session !== null)
  }
  if (question === null) return null
  return (
    <Suspense>
      <SessionDialog question={question} onSession={answer} onRefused={() => answer(null)} />
    </Suspense>
  )
}
