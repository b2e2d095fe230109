/** Routes of music, speech, voices and transcripts. */
import { makeMusic, musicTasks } from '../../../pipelines/media/audio/music.ts'
import { makeSpeech, speechTasks } from '../../../pipelines/media/audio/speech.ts'
import { extractTranscript } from '../../../pipelines/media/audio/transcripts.ts'
import { cloneVoice, deleteVoice, listVoices, showVoice } from '../../../pipelines/media/audio/voices.ts'
import { deleteFiles } from '../../../pipelines/media/files/delete-files.ts'
import type { CallGroups } from '../gateway/call-groups.ts'
import { type RoutedPath, routed } from './routed.ts'

export function audioRoutes(groups: CallGroups): readonly RoutedPath[] {
  const { access, orders, mediaTasks, made, files } = groups
  const { tasks, lists } = made
  const music = musicTasks(access, mediaTasks, files)
  const speech = speechTasks(access, mediaTasks, files)
  return [
    routed('/v1/music/generations', { POST: makeMusic(orders), GET: music.list }),
    routed('/v1/music/generations/{id}', { GET: music.show, DELETE: music.cancel }),
    routed('/v1/music/generations/{id}/files', { DELETE: deleteFiles(access, groups, 'music') }),
    routed('/v1/audio/speech', { POST: makeSpeech(orders, made, files), GET: speech.list }),
    routed('/v1/audio/speech/{id}', { GET: speech.show, DELETE: speech.cancel }),
    routed('/v1/audio/speech/{id}/files', { DELETE: deleteFiles(access, groups, 'speech') }),
    routed('/v1/audio/voices', {
      POST: cloneVoice(orders),
      GET: listVoices(access, { tasks, lists, catalog: access.catalog }),
    }),
    routed('/v1/audio/voices/{id}', { GET: showVoice(access, tasks), DELETE: deleteVoice(access, tasks) }),
    routed('/v1/transcripts/extract', { POST: extractTranscript(orders, files) }),
  ]
}
