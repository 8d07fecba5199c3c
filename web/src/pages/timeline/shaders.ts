/** The program that draws rectangles. Positions are in device pixels, times in ns from the window's base. */

export const VERTEX = `#version 300 es
precision highp float;
precision highp int;
precision highp usampler2D;

layout(location = 0) in vec2 a_span;
layout(location = 1) in uvec3 a_data;

uniform vec2 u_size;
uniform float u_from;
uniform float u_scale;
uniform float u_scroll;
uniform float u_top;
uniform float u_ratio;
uniform float u_least;
uniform uint u_by_name;
uniform uint u_searching;
uniform uint u_name;
uniform highp sampler2D u_rows;
uniform sampler2D u_palette;
uniform usampler2D u_hits;

flat out vec4 v_color;
flat out vec4 v_box;
flat out uint v_kind;

const uint EVENT = 0u;
const uint MERGED = 1u;
const uint LEVEL = 2u;
const uint COUNTER = 3u;
const uint IDLE = 4u;
const uint ALL_LANES = 255u;
const uint NO_NAME = 0xffffffffu;

void main() {
  uint row = a_data.x & 0xfffffu;
  uint lane = (a_data.x >> 20) & 0xffu;
  v_kind = a_data.x >> 28;
  uint name = a_data.y;
  uint category = a_data.z & 0xffu;
  uint slot = (a_data.z >> 8) & 0xffu;
  float level = float((a_data.z >> 16) & 0xffu) / 255.0;

  // y, height of a lane, lanes (0: hidden), whether it stays at the top.
  vec4 place = texelFetch(u_rows, ivec2(int(row & 1023u), int(row >> 10)), 0);
  float x0 = (a_span.x - u_from) * u_scale;
  float x1 = (a_span.y - u_from) * u_scale;
  float y0 = place.x - (place.w > 0.5 ? 0.0 : u_scroll);
  float height = place.y;
  if (lane == ALL_LANES) {
    height = place.y * place.z;
  } else {
    y0 += place.y * min(float(lane), place.z - 1.0);
  }
  float y1 = y0 + height;
  if (v_kind == COUNTER) {
    y0 = y1 - max(level * (height - 2.0), 0.0);
  } else if (v_kind != IDLE && height > 6.0) {
    y1 -= 1.0;
  }
  // Rows that scroll end below those that stay.
  float top = place.w > 0.5 ? 0.0 : u_top;
  y0 = max(y0, top) * u_ratio;
  y1 = max(y1, top) * u_ratio;
  // A category without opacity is hidden, whatever its events are coloured by.
  bool unseen = v_kind != IDLE && texelFetch(u_palette, ivec2(int(category), 0), 0).a == 0.0;
  bool hidden = unseen || place.z < 0.5 || y1 <= y0 || y0 > u_size.y || x1 < -1.0 || x0 > u_size.x;
  // What is thinner than a pixel is a pixel wide.
  x1 = max(x1, x0 + u_least);
  x0 = max(x0, -8.0);
  x1 = min(x1, u_size.x + 8.0);

  int color = int(category);
  int line = 0;
  if (u_by_name == 1u && name != NO_NAME && v_kind != COUNTER) {
    color = int(slot);
    line = 1;
  }
  vec4 paint = texelFetch(u_palette, ivec2(color, line), 0);
  if (v_kind == MERGED || v_kind == LEVEL) {
    // Time in which little runs is pale, but never gone.
    paint.a *= 0.35 + 0.65 * level;
  } else if (v_kind == COUNTER) {
    paint.a *= 0.75;
  } else if (v_kind == IDLE) {
    paint = texelFetch(u_palette, ivec2(63, 0), 0);
  }
  if (v_kind != IDLE && v_kind != COUNTER) {
    if (u_searching == 1u) {
      bool hit = name != NO_NAME && texelFetch(u_hits, ivec2(int(name & 4095u), int(name >> 12)), 0).r != 0u;
      paint.a *= hit ? 1.0 : 0.18;
    } else if (u_name != NO_NAME) {
      paint.a *= name == u_name ? 1.0 : 0.4;
    }
  }
  v_color = vec4(paint.rgb * paint.a, paint.a);
  v_box = vec4(x0, y0, x1, y1);
  if (hidden) {
    gl_Position = vec4(2.0, 2.0, 2.0, 1.0);
    return;
  }
  vec2 corner = vec2(float(gl_VertexID & 1), float(gl_VertexID >> 1));
  vec2 at = mix(vec2(x0, y0), vec2(x1, y1), corner);
  gl_Position = vec4(at.x / u_size.x * 2.0 - 1.0, 1.0 - at.y / u_size.y * 2.0, 0.0, 1.0);
}
`;

export const FRAGMENT = `#version 300 es
precision highp float;
precision highp int;

uniform vec2 u_size;

flat in vec4 v_color;
flat in vec4 v_box;
flat in uint v_kind;
out vec4 color;

const uint IDLE = 4u;

void main() {
  float x = gl_FragCoord.x;
  if (v_kind == IDLE) {
    float stripe = mod(x + gl_FragCoord.y, 8.0);
    color = v_color * (stripe < 2.0 ? 1.0 : 0.35);
    return;
  }
  // A gap on the right parts neighbours of the same colour.
  float part = v_box.z - v_box.x > 4.0 && v_box.z - x < 1.0 ? 0.35 : 1.0;
  color = v_color * part;
}
`;
