/** Tries an agent while it is edited, with a key that calls its draft. */
import { useState } from 'react'
import type { AnswerOf } from '../../api/client.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { Field, Form } from '../../ui/form.tsx'
import { ErrorState, Panel } from '../../ui/states.tsx'
import { useRun } from '../playground/use-run.ts'

interface TryAgentProps {
  readonly agent: AnswerOf<'listAgents'>['data'][number]
}

export function TryAgent({ agent }: TryAgentProps) {
  const { id, account_id: accountId, file, draft } = agent
  const [question, setQuestion] = useState('')
  const { run, start, stop } = useRun({ accountId, agentId: id })
  const isRunning = run?.isRunning === true
  const ask = () => {
    const messages = [{ role: 'user', content: question }]
    start((draft ?? file).model, { stream: true, stream_options: { include_usage: true }, messages })
  }
  return (
    <Panel title={t('Try it')}>
      <Form onSubmit={ask} className="flex flex-wrap items-end gap-2 p-4">
        <div className="min-w-40 flex-1">
          <Field
            label={t('Question')}
            hint={t(
              'A call made here is charged like any other. It uses the saved draft with its knowledge and tools.',
            )}
            required
            value={question}
            onText={setQuestion}
          />
        </div>
        {isRunning ? <Button onClick={stop}>{t('Stop')}</Button> : <Button type="submit">{t('Send')}</Button>}
      </Form>
      {run && (
        <p
          aria-live="polite"
          aria-busy={isRunning}
          className="whitespace-pre-wrap break-words border-line border-t p-4"
        >
          {run.answer.text}
          {run.answer.error && <span className="text-bad">{run.answer.error}</span>}
        </p>
      )}
      <ErrorState error={run?.error} />
    </Panel>
  )
}
